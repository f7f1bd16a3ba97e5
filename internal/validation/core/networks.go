package core

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// network is a CIDR with the path of its field.
type network struct {
	prefix netip.Prefix
	path   *field.Path
}

// reservedRanges are used inside the VPN between seeds and shoots.
var reservedRanges = []netip.Prefix{
	netip.MustParsePrefix(constants.ReservedKubeApiServerMappingRange),
	netip.MustParsePrefix(constants.ReservedSeedPodNetworkMappedRange),
	netip.MustParsePrefix(constants.ReservedShootNodeNetworkMappedRange),
	netip.MustParsePrefix(constants.ReservedShootServiceNetworkMappedRange),
	netip.MustParsePrefix(constants.ReservedShootPodNetworkMappedRange),
	netip.MustParsePrefix(constants.DefaultVPNRangeV6),
}

// parseNetwork parses a CIDR, which must be of the first of the IP families if there is more than one.
func parseNetwork(cidr string, families []corev1beta1.IPFamily, path *field.Path) (network, field.ErrorList) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return network{}, field.ErrorList{field.Invalid(path, cidr, "must be a CIDR such as 10.0.0.0/16")}
	}
	var errs field.ErrorList
	if prefix != prefix.Masked() {
		errs = append(errs, field.Invalid(path, cidr, "must be in the canonical form "+prefix.Masked().String()))
	}
	if len(families) == 1 && prefix.Addr().Is4() != (families[0] == corev1beta1.IPFamilyIPv4) {
		errs = append(errs, field.Invalid(path, cidr, "must be of the IP family "+string(families[0])))
	}
	return network{prefix, path}, errs
}

// disjoint refuses networks that overlap. The error is at the later one.
func disjoint(networks []network) field.ErrorList {
	var errs field.ErrorList
	for i, n := range networks {
		for _, before := range networks[:i] {
			if n.prefix.IsValid() && before.prefix.IsValid() && n.prefix.Overlaps(before.prefix) {
				errs = append(errs, field.Invalid(n.path, n.prefix.String(), "must not overlap with "+before.path.String()))
			}
		}
	}
	return errs
}

// unreserved refuses networks that overlap with the reserved ranges.
func unreserved(networks []network) field.ErrorList {
	var errs field.ErrorList
	for _, n := range networks {
		if i := slices.IndexFunc(reservedRanges, func(r netip.Prefix) bool { return n.prefix.IsValid() && r.Overlaps(n.prefix) }); i >= 0 {
			errs = append(errs, field.Invalid(n.path, n.prefix.String(), "must not overlap with the reserved range "+reservedRanges[i].String()))
		}
	}
	return errs
}

// ipFamilies checks a list of IP families.
func ipFamilies(families []corev1beta1.IPFamily, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, family := range families {
		errs = append(errs, supported(family, []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6}, path.Index(i))...)
		if slices.Contains(families[:i], family) {
			errs = append(errs, field.Duplicate(path.Index(i), family))
		}
	}
	return errs
}
