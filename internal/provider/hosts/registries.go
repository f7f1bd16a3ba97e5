package hosts

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/containerd"
	"gardener.cloud/gardener/pkg/extension/webhook/controlplane"
)

// readRegistries reads how hosts reach registries: a list in YAML of what OperatingSystemConfigs have in spec.criConfig.containerd.registries.
func readRegistries(file string) ([]extensionsv1alpha1.RegistryConfig, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--registries: %w", err)
	}
	var registries []extensionsv1alpha1.RegistryConfig
	if err := yaml.UnmarshalStrict(data, &registries); err != nil {
		return nil, fmt.Errorf("--registries: %w", err)
	}
	if err := validateRegistries(registries, field.NewPath("registries")).ToAggregate(); err != nil {
		return nil, err
	}
	return registries, nil
}

func validateRegistries(registries []extensionsv1alpha1.RegistryConfig, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	checkURL := func(value string, at *field.Path) {
		u, err := url.Parse(value)
		if err == nil && u.Scheme != "http" && u.Scheme != "https" || err == nil && u.Host == "" {
			err = errors.New("no scheme or host")
		}
		if err != nil {
			errs = append(errs, field.Invalid(at, value, "must be a URL with http or https"))
		}
	}
	for i, registry := range registries {
		at := at.Index(i)
		if seen[registry.Upstream] {
			errs = append(errs, field.Duplicate(at.Child("upstream"), registry.Upstream))
		}
		seen[registry.Upstream] = true
		// It becomes the name of a directory.
		if name, _, _ := strings.Cut(registry.Upstream, ":"); len(validation.IsDNS1123Subdomain(name)) > 0 || strings.Contains(registry.Upstream, "/") {
			errs = append(errs, field.Invalid(at.Child("upstream"), registry.Upstream, "must be a host name, or one with a port"))
		}
		if registry.Server != nil {
			checkURL(*registry.Server, at.Child("server"))
		}
		for j, host := range registry.Hosts {
			checkURL(host.URL, at.Child("hosts").Index(j).Child("url"))
		}
	}
	return errs
}

// setRegistries adds registries to a configuration, except for those that it says something about. New hosts pull the gardener-node-agent before there is one
// that could configure containerd, so they get files.
func setRegistries(osc *extensionsv1alpha1.OperatingSystemConfig, registries []extensionsv1alpha1.RegistryConfig) {
	if osc.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
		for _, registry := range registries {
			controlplane.SetFile(osc, extensionsv1alpha1.File{
				Path: containerd.HostsPath(registry.Upstream), Permissions: new(uint32(0o644)),
				Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: string(containerd.HostsFile(registry))}},
			})
		}
		return
	}
	if osc.Spec.CRIConfig == nil || osc.Spec.CRIConfig.Containerd == nil {
		return
	}
	config := osc.Spec.CRIConfig.Containerd
	for _, registry := range registries {
		if !slices.ContainsFunc(config.Registries, func(r extensionsv1alpha1.RegistryConfig) bool { return r.Upstream == registry.Upstream }) {
			config.Registries = append(config.Registries, registry)
		}
	}
}
