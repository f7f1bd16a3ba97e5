package hosts

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

// addressRange has all addresses from first to last, of one family.
type addressRange struct{ first, last netip.Addr }

func (r addressRange) contains(a netip.Addr) bool {
	return a.BitLen() == r.first.BitLen() && !a.Less(r.first) && !r.last.Less(a)
}

// parseRanges reads the addresses of a pool. It returns every error.
func parseRanges(addresses []string, at *field.Path) ([]addressRange, field.ErrorList) {
	var ranges []addressRange
	var errs field.ErrorList
	for i, text := range addresses {
		r, problem := parseRange(text)
		if problem == "" {
			if overlaps := slices.IndexFunc(ranges, func(o addressRange) bool { return o.contains(r.first) || r.contains(o.first) }); overlaps >= 0 {
				problem = fmt.Sprintf("overlaps with %s-%s", ranges[overlaps].first, ranges[overlaps].last)
			}
		}
		if problem != "" {
			errs = append(errs, field.Invalid(at.Index(i), text, problem))
			continue
		}
		ranges = append(ranges, r)
	}
	return ranges, errs
}

// parseRange reads a range, a network or an address, or says what is wrong with it.
func parseRange(text string) (addressRange, string) {
	var r addressRange
	first, last, isRange := strings.Cut(text, "-")
	if network, err := netip.ParsePrefix(text); err == nil {
		if network != network.Masked() {
			return r, fmt.Sprintf("has bits set beyond its prefix: use %s", network.Masked())
		}
		r = addressRange{network.Addr(), lastOf(network)}
	} else {
		if !isRange {
			last = first
		}
		var errFirst, errLast error
		r.first, errFirst = netip.ParseAddr(strings.TrimSpace(first))
		r.last, errLast = netip.ParseAddr(strings.TrimSpace(last))
		if errFirst != nil || errLast != nil {
			return r, "must be like 192.0.2.10-192.0.2.20, 192.0.2.64/28 or 192.0.2.10"
		}
	}
	switch {
	case r.first.Is4() != r.last.Is4():
		return r, "must have addresses of one family"
	case r.first.Is4In6() || r.last.Is4In6() || r.first.Zone() != "" || r.last.Zone() != "":
		return r, "must have no zones, and no IPv4 addresses in IPv6"
	case r.last.Less(r.first):
		return r, "must not end before it begins"
	case !usable(r.first) || !usable(r.last):
		return r, "must not have addresses that are unspecified, loopback, link-local or multicast"
	}
	return r, ""
}

func usable(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// lastOf returns the last address of a network.
func lastOf(network netip.Prefix) netip.Addr {
	bytes := network.Addr().AsSlice()
	for bit := network.Bits(); bit < network.Addr().BitLen(); bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// addressBook is all pools and claims while addresses are given: its objects are changed.
type addressBook struct {
	pools  []hostsv1alpha1.AddressPool
	ranges map[string][]addressRange // of each pool that is valid
	owners map[string]types.UID      // the claim of each address
	given  map[types.UID]string      // the address of each claim
	counts map[string]int            // addresses of each control plane
}

// addressesPerShoot is how many addresses a shoot can have.
const addressesPerShoot = 20

func (b *addressBook) give(address string, claim types.UID) {
	b.owners[address], b.given[claim] = claim, address
}

// giveAddresses writes the desired status of all pools and claims. An address stays with the claim that has it, also if its pool is changed or gone.
func giveAddresses(pools []hostsv1alpha1.AddressPool, claims []hostsv1alpha1.AddressClaim, now time.Time) {
	slices.SortFunc(pools, func(a, b hostsv1alpha1.AddressPool) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(claims, func(a, b hostsv1alpha1.AddressClaim) int { // the oldest first
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	book := &addressBook{pools: pools, ranges: map[string][]addressRange{}, owners: map[string]types.UID{}, given: map[types.UID]string{}, counts: map[string]int{}}
	exists := map[types.UID]bool{}
	for i := range claims {
		exists[claims[i].UID] = true
	}
	for i := range pools {
		pool := &pools[i]
		book.validate(pool, now)
		pool.Status.Assigned = slices.DeleteFunc(pool.Status.Assigned, func(a hostsv1alpha1.AssignedAddress) bool { return !exists[a.UID] })
		for _, a := range pool.Status.Assigned {
			book.give(a.Address, a.UID)
		}
	}
	for i := range claims { // also those whose pool is gone
		if claim := &claims[i]; claim.Status.Address != "" && book.owners[claim.Status.Address] == "" && book.given[claim.UID] == "" {
			book.give(claim.Status.Address, claim.UID)
		}
	}
	for i := range claims {
		if book.given[claims[i].UID] != "" {
			book.counts[claims[i].Namespace]++
		}
	}
	for i := range claims {
		book.serve(&claims[i])
	}
}

// validate sets the condition of a pool.
func (b *addressBook) validate(pool *hostsv1alpha1.AddressPool, now time.Time) {
	ranges, errs := parseRanges(pool.Spec.Addresses, field.NewPath("spec", "addresses"))
	for i, pattern := range pool.Spec.Namespaces {
		if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "namespaces").Index(i), pattern, "must be a pattern like shoot--dev--*"))
		}
	}
	condition := metav1.Condition{
		Type: hostsv1alpha1.ConditionValid, Status: metav1.ConditionTrue, Reason: "Valid", ObservedGeneration: pool.Generation,
		LastTransitionTime: metav1.NewTime(now),
	}
	if len(errs) > 0 {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "InvalidSpec", errs.ToAggregate().Error()
	} else {
		b.ranges[pool.Name] = ranges
	}
	meta.SetStatusCondition(&pool.Status.Conditions, condition)
}

// serve gives a claim an address, or says why there is none. The tenant reads it: it names no pool, and no other shoot.
func (b *addressBook) serve(claim *hostsv1alpha1.AddressClaim) {
	if address := b.given[claim.UID]; address != "" {
		claim.Status = hostsv1alpha1.AddressClaimStatus{Address: address}
		return
	}
	if has := b.counts[claim.Namespace]; has >= addressesPerShoot {
		claim.Status = hostsv1alpha1.AddressClaimStatus{Message: fmt.Sprintf("this shoot has %d addresses, and cannot have more", has)}
		return
	}
	fitting := 0
	for i := range b.pools {
		pool := &b.pools[i]
		if pool.DeletionTimestamp != nil || !serves(pool, claim.Namespace) {
			continue
		}
		fitting++
		if address := b.free(b.ranges[pool.Name], claim); address != "" {
			b.give(address, claim.UID)
			b.counts[claim.Namespace]++
			pool.Status.Assigned = append(pool.Status.Assigned, hostsv1alpha1.AssignedAddress{
				Address: address, Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			})
			claim.Status = hostsv1alpha1.AddressClaimStatus{Address: address}
			return
		}
	}
	what := fmt.Sprintf("no %s address is left", claim.Spec.Family)
	if claim.Spec.Address != "" {
		what = fmt.Sprintf("the address %s is not in a pool, or it is used", claim.Spec.Address)
	}
	claim.Status = hostsv1alpha1.AddressClaimStatus{Message: fmt.Sprintf("%s (pools of this shoot: %d)", what, fitting)}
}

// serves reports whether control planes in a namespace get addresses of a pool.
func serves(pool *hostsv1alpha1.AddressPool, namespace string) bool {
	return len(pool.Spec.Namespaces) == 0 || slices.ContainsFunc(pool.Spec.Namespaces, func(pattern string) bool {
		matches, _ := path.Match(pattern, namespace)
		return matches
	})
}

func fitsFamily(address string, claim *hostsv1alpha1.AddressClaim) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && a.Is4() == (claim.Spec.Family == corev1.IPv4Protocol)
}

// free returns the first free address that fits a claim, or "". It looks at no more addresses than are taken, and one.
func (b *addressBook) free(ranges []addressRange, claim *hostsv1alpha1.AddressClaim) string {
	if claim.Spec.Address != "" {
		wanted, err := netip.ParseAddr(claim.Spec.Address)
		if err != nil || wanted.Zone() != "" || b.owners[wanted.String()] != "" || !fitsFamily(claim.Spec.Address, claim) ||
			!slices.ContainsFunc(ranges, func(r addressRange) bool { return r.contains(wanted) }) {
			return ""
		}
		return wanted.String()
	}
	for _, r := range ranges {
		if r.first.Is4() != (claim.Spec.Family == corev1.IPv4Protocol) {
			continue
		}
		for a := r.first; r.contains(a); a = a.Next() {
			if b.owners[a.String()] == "" {
				return a.String()
			}
		}
	}
	return ""
}
