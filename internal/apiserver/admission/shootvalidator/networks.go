package shootvalidator

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// reserved are the ranges that the VPN between seed and shoot maps networks to.
var reserved = []netip.Prefix{
	netip.MustParsePrefix(constants.ReservedKubeApiServerMappingRange),
	netip.MustParsePrefix(constants.ReservedSeedPodNetworkMappedRange),
	netip.MustParsePrefix(constants.ReservedShootNodeNetworkMappedRange),
	netip.MustParsePrefix(constants.ReservedShootServiceNetworkMappedRange),
	netip.MustParsePrefix(constants.ReservedShootPodNetworkMappedRange),
	netip.MustParsePrefix(constants.DefaultVPNRangeV6),
}

type network struct {
	prefix netip.Prefix
	path   *field.Path
}

// networks checks that the networks of the shoot do not overlap, neither with each other nor with reserved ones. On a
// seed they must be set, unless the infrastructure assigns them, as it does with IPv6.
func networks(in *input) field.ErrorList {
	spec, path := &in.shoot.Spec, field.NewPath("spec", "networking")
	workerless := spec.Workerless()
	networking := spec.Networking
	if networking == nil {
		networking = &corev1beta1.Networking{}
	}
	var errs field.ErrorList
	assigned := slices.Contains(networking.IPFamilies, corev1beta1.IPFamilyIPv6)
	if in.seed != nil && !assigned && !in.deleting() {
		if networking.Pods == nil && !workerless {
			errs = append(errs, field.Required(path.Child("pods"), "must be set, as the seed proposes none"))
		}
		if networking.Services == nil {
			errs = append(errs, field.Required(path.Child("services"), "must be set, as the seed proposes none"))
		}
	}
	var own []network
	for _, n := range []struct {
		name string
		cidr *string
	}{{"nodes", networking.Nodes}, {"pods", networking.Pods}, {"services", networking.Services}} {
		if n.cidr == nil {
			continue
		}
		// One that cannot be parsed is refused by the checks of the object itself.
		prefix, err := netip.ParsePrefix(*n.cidr)
		if err != nil {
			continue
		}
		own = append(own, network{prefix, path.Child(n.name)})
	}
	for i, n := range own {
		switch {
		case slices.ContainsFunc(own[:i], func(other network) bool { return other.prefix.Overlaps(n.prefix) }):
			errs = append(errs, field.Invalid(n.path, n.prefix.String(), "must not overlap with another network of the shoot"))
		case slices.ContainsFunc(reserved, n.prefix.Overlaps):
			errs = append(errs, field.Invalid(n.path, n.prefix.String(), "must not overlap with the ranges that the VPN to the seed uses"))
		case in.seed != nil && slices.ContainsFunc(seedNetworks(in.seed), n.prefix.Overlaps):
			errs = append(errs, field.Invalid(n.path, n.prefix.String(), "must not overlap with the networks of seed "+in.seed.Name))
		}
	}
	return errs
}

// seedNetworks returns those networks of a seed that its shoots must not use. IPv4 networks of seeds are mapped to reserved ranges
// in the VPN, so that shoots may use them, too.
func seedNetworks(seed *corev1beta1.Seed) []netip.Prefix {
	var out []netip.Prefix
	for _, cidr := range []*string{seed.Spec.Networks.Nodes, &seed.Spec.Networks.Pods, &seed.Spec.Networks.Services} {
		if cidr == nil {
			continue
		}
		if prefix, err := netip.ParsePrefix(*cidr); err == nil && prefix.Addr().Is6() {
			out = append(out, prefix)
		}
	}
	return out
}
