package operatingsystemconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
)

// configureRegistries writes the hosts.toml files of registries, which containerd reads with each pull. Mirrors with a readiness probe are
// probed until their file has been written.
func (p *pass) configureRegistries(ctx context.Context) error {
	for _, registry := range registries(p.osc) {
		file := hostsPath(registry.Upstream)
		if ptr.Deref(registry.ReadinessProbe, false) && !p.Root.Exists(file) {
			if err := p.probe(ctx, registry); err != nil {
				logf.FromContext(ctx).V(1).Info("A mirror does not answer yet", "registry", registry.Upstream, "reason", err.Error())
				p.unready = append(p.unready, registry.Upstream)
				continue
			}
		}
		if _, err := p.Root.Update(file, hosts(registry), 0o644); err != nil {
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
			files = append(files, extensionsv1alpha1.File{Path: hostsPath(registry.Upstream)})
		}
	}
	return files
}

// hostsPath is the file in which containerd finds the hosts of a registry.
func hostsPath(upstream string) string { return imagefile.CertsDir + "/" + upstream + "/hosts.toml" }

// hosts renders the hosts of a registry. containerd tries them in the order of the file, which a TOML encoder would not keep.
func hosts(registry extensionsv1alpha1.RegistryConfig) []byte {
	var out strings.Builder
	out.WriteString("# Written by gardener-node-agent.\n")
	if registry.Server != nil {
		fmt.Fprintf(&out, "server = %s\n", quote(*registry.Server))
	}
	for _, host := range registry.Hosts {
		fmt.Fprintf(&out, "\n[host.%s]\n", quote(host.URL))
		capabilities := host.Capabilities
		if len(capabilities) == 0 {
			capabilities = []extensionsv1alpha1.RegistryCapability{extensionsv1alpha1.PullCapability, extensionsv1alpha1.ResolveCapability}
		}
		fmt.Fprintf(&out, "capabilities = %s\n", list(capabilities))
		if len(host.CACerts) > 0 {
			fmt.Fprintf(&out, "ca = %s\n", list(host.CACerts))
		}
		if ptr.Deref(host.OverridePath, false) {
			out.WriteString("override_path = true\n")
		}
	}
	return []byte(out.String())
}

// quote returns a string in quotes. Those of JSON are valid in TOML.
func quote(s string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // strings can be encoded, and buffers written
	return strings.TrimSpace(out.String())
}

func list[S ~string](values []S) string {
	var quoted []string
	for _, value := range values {
		quoted = append(quoted, quote(string(value)))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
