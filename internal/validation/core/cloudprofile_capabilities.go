package core

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// capabilities are the capabilities that a CloudProfile declares, with all their possible values.
type capabilities map[string][]string

// reservedCapabilityPrefix is the prefix of names that are reserved for Gardener.
const reservedCapabilityPrefix = "gardener-"

func capabilityDefinitions(definitions []corev1beta1.CapabilityDefinition, opts Options, path *field.Path) (capabilities, field.ErrorList) {
	if len(definitions) == 0 {
		return nil, nil
	}
	if !opts.CloudProfileCapabilities {
		return nil, field.ErrorList{field.Forbidden(path, "needs the feature gate CloudProfileCapabilities")}
	}
	var errs field.ErrorList
	out := capabilities{}
	for i, definition := range definitions {
		indexed := path.Index(i).Child("name")
		switch {
		case definition.Name == "":
			errs = append(errs, field.Required(path.Index(i).Child("name"), "must be set"))
		case strings.HasPrefix(definition.Name, reservedCapabilityPrefix):
			errs = append(errs, field.Forbidden(indexed, `names that begin with "gardener-" are reserved`))
		}
		if _, ok := out[definition.Name]; ok {
			errs = append(errs, field.Duplicate(indexed, definition.Name))
		}
		out[definition.Name] = definition.Values

		values := path.Child(definition.Name)
		if len(definition.Values) == 0 {
			errs = append(errs, field.Required(values, "must have at least one value"))
		}
		for j, value := range definition.Values {
			if value == "" {
				errs = append(errs, field.Required(values.Index(j), "must not be empty"))
			}
			if slices.Contains(definition.Values[:j], value) {
				errs = append(errs, field.Duplicate(values.Index(j), value))
			}
		}
		if definition.Name == constants.ArchitectureName && slices.ContainsFunc(definition.Values, func(v string) bool { return !slices.Contains(architectures, v) }) {
			errs = append(errs, field.Invalid(values, definition.Values, "must be among amd64 and arm64"))
		}
	}
	if _, ok := out[constants.ArchitectureName]; !ok {
		errs = append(errs, field.Required(path.Child(constants.ArchitectureName), "must be declared"))
	}
	return out, errs
}

// check refuses names and values that are not declared.
func (c capabilities) check(given corev1beta1.Capabilities, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, values := range ordered.Map(given) {
		declared, ok := c[name]
		if !ok {
			errs = append(errs, field.NotSupported(path, name, keys(c)))
			continue
		}
		for i, value := range values {
			if !slices.Contains(declared, value) {
				errs = append(errs, field.NotSupported(path.Child(name).Index(i), value, declared))
			}
		}
	}
	return errs
}

func (c capabilities) checkMachineType(machineType corev1beta1.MachineType, path *field.Path) field.ErrorList {
	if c != nil && len(c) == 0 {
		return nil // those of the parent apply
	}
	if len(machineType.Capabilities) > 0 {
		if c == nil {
			return field.ErrorList{field.Forbidden(path.Child("capabilities"), "the profile declares no capabilities")}
		}
		errs := c.check(machineType.Capabilities, path.Child("capabilities"))
		values := machineType.Capabilities[constants.ArchitectureName]
		if len(values) > 1 {
			errs = append(errs, field.Invalid(path.Child("capabilities", constants.ArchitectureName), values, "must be one"))
		}
		if machineType.Architecture != nil && *machineType.Architecture != "" && len(values) == 1 && values[0] != *machineType.Architecture {
			errs = append(errs, field.Invalid(path.Child("architecture"), *machineType.Architecture, "must be that of the capabilities"))
		}
		return errs
	}
	return nil
}

func (c capabilities) checkImageVersion(version corev1beta1.MachineImageVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	flavors := path.Child("capabilityFlavors")
	if c == nil {
		if len(version.CapabilityFlavors) > 0 {
			errs = append(errs, field.Forbidden(flavors, "the profile declares no capabilities"))
		}
		if len(version.Architectures) == 0 {
			errs = append(errs, field.Required(path.Child("architectures"), "must have at least one entry"))
		}
		return append(errs, imageArchitectureNames(version.Architectures, architectures, path.Child("architectures"))...)
	}

	declared := c[constants.ArchitectureName]
	if len(version.CapabilityFlavors) == 0 && len(declared) > 1 {
		errs = append(errs, field.Required(flavors, "must name the architectures of the image"))
	}
	var fromFlavors []string
	for i, flavor := range version.CapabilityFlavors {
		path := flavors.Index(i)
		errs = append(errs, c.check(flavor.Capabilities, path)...)
		values := flavor.Capabilities[constants.ArchitectureName]
		switch {
		case len(values) > 1:
			errs = append(errs, field.Invalid(path.Child(constants.ArchitectureName), values, "must be one"))
		case len(values) == 0 && len(declared) > 1:
			errs = append(errs, field.Required(path.Child(constants.ArchitectureName), "must be set, as there are several"))
		}
		fromFlavors = append(fromFlavors, values...)
	}
	errs = append(errs, imageArchitectureNames(version.Architectures, declared, path.Child("architectures"))...)
	if len(fromFlavors) == 0 {
		fromFlavors = declared
	}
	if len(version.Architectures) > 0 && (len(version.CapabilityFlavors) > 0 || len(declared) <= 1) && !sameSet(version.Architectures, fromFlavors) {
		errs = append(errs, field.Invalid(path.Child("architectures"), version.Architectures, "must be those of the capability flavors"))
	}
	return errs
}

func imageArchitectureNames(names, known []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		errs = append(errs, supported(name, known, path.Index(i))...)
	}
	return errs
}

func machineTypeArchitectures(machineType corev1beta1.MachineType) []string {
	if values := machineType.Capabilities[constants.ArchitectureName]; len(values) > 0 {
		return values
	}
	if machineType.Architecture != nil {
		return []string{*machineType.Architecture}
	}
	return nil
}

func imageArchitectures(version corev1beta1.MachineImageVersion) []string {
	out := slices.Clone(version.Architectures)
	for _, flavor := range version.CapabilityFlavors {
		out = append(out, flavor.Capabilities[constants.ArchitectureName]...)
	}
	return out
}

func sameSet(a, b []string) bool {
	in := func(list []string) func(string) bool { return func(s string) bool { return !slices.Contains(list, s) } }
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func nonNegative(quantity resource.Quantity, path *field.Path) field.ErrorList {
	if quantity.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, quantity.String(), "must not be negative")}
	}
	return nil
}
