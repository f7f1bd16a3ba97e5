package operatingsystemconfig

import (
	"context"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/containerd"
)

// configureRegistries writes the hosts.toml files of registries, which containerd reads with each pull. Mirrors with a readiness probe are
// probed until their file has been written.
func (p *pass) configureRegistries(ctx context.Context) error {
	for _, registry := range registries(p.osc) {
		file := containerd.HostsPath(registry.Upstream)
		if ptr.Deref(registry.ReadinessProbe, false) && !p.Root.Exists(file) {
			if err := p.probe(ctx, registry); err != nil {
				logf.FromContext(ctx).V(1).Info("A mirror does not answer yet", "registry", registry.Upstream, "reason", err.Error())
				p.unready = append(p.unready, registry.Upstream)
				continue
			}
		}
		if _, err := p.Root.Update(file, containerd.HostsFile(registry), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// probe returns why a mirror of a registry is not ready.
func (p *pass) probe(ctx context.Context, registry extensionsv1alpha1.RegistryConfig) error {
	for _, host := range registry.Hosts {
		if err := p.Probe(ctx, p.Root, registry.Upstream, host); err != nil {
			return err
		}
	}
	return nil
}

// registries are those that a configuration has hosts for.
func registries(osc *extensionsv1alpha1.OperatingSystemConfig) []extensionsv1alpha1.RegistryConfig {
	if !hasContainerd(osc) || osc.Spec.CRIConfig.Containerd == nil {
		return nil
	}
	return osc.Spec.CRIConfig.Containerd.Registries
}

func registryFiles(configurations ...*extensionsv1alpha1.OperatingSystemConfig) []extensionsv1alpha1.File {
	var files []extensionsv1alpha1.File
	for _, osc := range configurations {
		for _, registry := range registries(osc) {
			files = append(files, extensionsv1alpha1.File{Path: containerd.HostsPath(registry.Upstream)})
		}
	}
	return files
}
