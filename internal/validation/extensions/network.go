package extensions

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/validation/cidr"
)

// ValidateNetwork checks a new Network.
func ValidateNetwork(network *extensionsv1alpha1.Network) field.ErrorList {
	spec := &network.Spec
	errs := validate(&network.ObjectMeta, true, &spec.DefaultSpec)
	var networks []cidr.Network
	for _, n := range []cidr.Network{
		{Path: specPath.Child("podCIDR"), Value: spec.PodCIDR},
		{Path: specPath.Child("serviceCIDR"), Value: spec.ServiceCIDR},
	} {
		if n.Value == "" {
			errs = append(errs, field.Required(n.Path, "must be set"))
		} else {
			networks = append(networks, n)
		}
	}
	errs = append(errs, cidr.Validate(networks...)...)
	errs = append(errs, cidr.ValidateDisjoint(networks...)...)

	path := specPath.Child("ipFamilies")
	for i, family := range spec.IPFamilies {
		errs = append(errs, supported(family, path.Index(i), extensionsv1alpha1.IPFamilyIPv4, extensionsv1alpha1.IPFamilyIPv6)...)
		if slices.Contains(spec.IPFamilies[:i], family) {
			errs = append(errs, field.Duplicate(path.Index(i), family))
		}
	}
	return errs
}

// ValidateNetworkUpdate checks a changed Network.
func ValidateNetworkUpdate(network, old *extensionsv1alpha1.Network) field.ErrorList {
	if errs, done := frozen(&network.ObjectMeta, network.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&network.ObjectMeta, &old.ObjectMeta, &network.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(network.Spec.PodCIDR, old.Spec.PodCIDR, specPath.Child("podCIDR"))...)
	errs = append(errs, immutable(network.Spec.ServiceCIDR, old.Spec.ServiceCIDR, specPath.Child("serviceCIDR"))...)
	families, oldFamilies := ipFamilies(network), ipFamilies(old)
	if len(families) < len(oldFamilies) || !slices.Equal(families[:len(oldFamilies)], oldFamilies) {
		errs = append(errs, field.Forbidden(specPath.Child("ipFamilies"), "an IP family can only be added at the end"))
	}
	return append(errs, ValidateNetwork(network)...)
}

// ipFamilies returns the families of a network, for which unset means IPv4.
func ipFamilies(network *extensionsv1alpha1.Network) []extensionsv1alpha1.IPFamily {
	if len(network.Spec.IPFamilies) == 0 {
		return []extensionsv1alpha1.IPFamily{extensionsv1alpha1.IPFamilyIPv4}
	}
	return network.Spec.IPFamilies
}
