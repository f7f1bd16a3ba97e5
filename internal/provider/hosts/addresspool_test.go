package hosts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

func TestParseRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		addresses []string
		want      string // ranges, or the error
	}{
		"a range":                  {[]string{"192.0.2.10-192.0.2.20"}, "192.0.2.10-192.0.2.20"},
		"with spaces":              {[]string{"192.0.2.10 - 192.0.2.20"}, "192.0.2.10-192.0.2.20"},
		"a network":                {[]string{"192.0.2.64/28"}, "192.0.2.64-192.0.2.79"},
		"an address":               {[]string{"192.0.2.7"}, "192.0.2.7-192.0.2.7"},
		"a network of IPv6":        {[]string{"2001:db8::/120"}, "2001:db8::-2001:db8::ff"},
		"both families":            {[]string{"192.0.2.7", "2001:db8::1"}, "192.0.2.7-192.0.2.7 2001:db8::1-2001:db8::1"},
		"overlap":                  {[]string{"192.0.2.0/28", "192.0.2.15"}, `spec.addresses[1]: Invalid value: "192.0.2.15": overlaps with 192.0.2.0-192.0.2.15`},
		"a larger one later":       {[]string{"192.0.2.15", "192.0.2.0/28"}, `spec.addresses[1]: Invalid value: "192.0.2.0/28": overlaps with 192.0.2.15-192.0.2.15`},
		"the end before the start": {[]string{"192.0.2.20-192.0.2.10"}, `spec.addresses[0]: Invalid value: "192.0.2.20-192.0.2.10": must not end before it begins`},
		"bits of hosts":            {[]string{"192.0.2.65/28"}, `spec.addresses[0]: Invalid value: "192.0.2.65/28": has bits set beyond its prefix: use 192.0.2.64/28`},
		"mixed families":           {[]string{"192.0.2.1-2001:db8::1"}, `spec.addresses[0]: Invalid value: "192.0.2.1-2001:db8::1": must have addresses of one family`},
		"a name":                   {[]string{"example.com"}, `spec.addresses[0]: Invalid value: "example.com": must be like 192.0.2.10-192.0.2.20, 192.0.2.64/28 or 192.0.2.10`},
		"loopback":                 {[]string{"127.0.0.1"}, `spec.addresses[0]: Invalid value: "127.0.0.1": must not have addresses that are unspecified, loopback, link-local or multicast`},
		"a zone":                   {[]string{"fe80::1%eth0"}, `spec.addresses[0]: Invalid value: "fe80::1%eth0": must have no zones, and no IPv4 addresses in IPv6`},
	} {
		t.Run(name, func(t *testing.T) {
			ranges, errs := parseRanges(tc.addresses, field.NewPath("spec", "addresses"))
			var got []string
			for _, r := range ranges {
				got = append(got, r.first.String()+"-"+r.last.String())
			}
			if len(errs) > 0 {
				got = []string{errs.ToAggregate().Error()}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("parseRanges() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGiveAddresses(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pool := func(name string, addresses []string, namespaces []string, assigned ...hostsv1alpha1.AssignedAddress) hostsv1alpha1.AddressPool {
		return hostsv1alpha1.AddressPool{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hostsv1alpha1.AddressPoolSpec{Addresses: addresses, Namespaces: namespaces},
			Status: hostsv1alpha1.AddressPoolStatus{Assigned: assigned},
		}
	}
	claim := func(namespace, name string, age time.Duration, edit ...func(*hostsv1alpha1.AddressClaim)) hostsv1alpha1.AddressClaim {
		c := hostsv1alpha1.AddressClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), CreationTimestamp: metav1.NewTime(now.Add(-age))},
			Spec:       hostsv1alpha1.AddressClaimSpec{Family: corev1.IPv4Protocol},
		}
		for _, e := range edit {
			e(&c)
		}
		return c
	}
	asks := func(address string) func(*hostsv1alpha1.AddressClaim) {
		return func(c *hostsv1alpha1.AddressClaim) { c.Spec.Address = address }
	}
	has := func(address string) func(*hostsv1alpha1.AddressClaim) {
		return func(c *hostsv1alpha1.AddressClaim) { c.Status.Address = address }
	}
	v6 := func(c *hostsv1alpha1.AddressClaim) { c.Spec.Family = corev1.IPv6Protocol }
	assigned := func(address, namespace, name string) hostsv1alpha1.AssignedAddress {
		return hostsv1alpha1.AssignedAddress{Address: address, Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}
	}
	two := []string{"192.0.2.1-192.0.2.2"}
	for name, tc := range map[string]struct {
		pools  []hostsv1alpha1.AddressPool
		claims []hostsv1alpha1.AddressClaim
		want   map[string]string // the address or the message of each claim
		kept   int               // addresses in the status of pools
	}{
		"the oldest first, and two shoots never have one address": {
			[]hostsv1alpha1.AddressPool{pool("p", two, nil)},
			[]hostsv1alpha1.AddressClaim{claim("b", "1", time.Minute), claim("a", "1", time.Second), claim("a", "2", time.Hour)},
			map[string]string{"a/2": "192.0.2.1", "b/1": "192.0.2.2", "a/1": "no IPv4 address is left (pools of this shoot: 1)"},
			2,
		},
		"overlapping pools do not give an address twice": {
			[]hostsv1alpha1.AddressPool{pool("p", two, []string{"a"}), pool("q", two, []string{"b"})},
			[]hostsv1alpha1.AddressClaim{claim("a", "1", 0), claim("b", "1", 0)},
			map[string]string{"a/1": "192.0.2.1", "b/1": "192.0.2.2"},
			2,
		},
		"an address stays, though an older claim waits": {
			[]hostsv1alpha1.AddressPool{pool("p", []string{"192.0.2.1"}, nil, assigned("192.0.2.1", "a", "young"))},
			[]hostsv1alpha1.AddressClaim{claim("a", "young", 0), claim("a", "old", time.Hour)},
			map[string]string{"a/young": "192.0.2.1", "a/old": "no IPv4 address is left (pools of this shoot: 1)"},
			1,
		},
		"an address with a zone is none of a pool": {
			[]hostsv1alpha1.AddressPool{pool("p", []string{"2001:db8::1-2001:db8::9"}, nil)},
			[]hostsv1alpha1.AddressClaim{claim("a", "1", 0, v6, asks("2001:db8::5%x"))},
			map[string]string{"a/1": "the address 2001:db8::5%x is not in a pool, or it is used (pools of this shoot: 1)"},
			0,
		},
		"an address of a claim that is gone is free": {
			[]hostsv1alpha1.AddressPool{pool("p", []string{"192.0.2.1"}, nil, assigned("192.0.2.1", "a", "gone"))},
			[]hostsv1alpha1.AddressClaim{claim("a", "new", 0)},
			map[string]string{"a/new": "192.0.2.1"},
			1,
		},
		"the address of a claim whose pool is gone is not given to another": {
			[]hostsv1alpha1.AddressPool{pool("p", two, nil)},
			[]hostsv1alpha1.AddressClaim{claim("a", "1", time.Hour), claim("b", "1", 0, has("192.0.2.1"))},
			map[string]string{"a/1": "192.0.2.2", "b/1": "192.0.2.1"},
			1,
		},
		"an address that was removed from its pool stays": {
			[]hostsv1alpha1.AddressPool{pool("p", two, nil, assigned("192.0.2.9", "a", "1"))},
			[]hostsv1alpha1.AddressClaim{claim("a", "1", 0)},
			map[string]string{"a/1": "192.0.2.9"},
			1,
		},
		"the address that it asks for": {
			[]hostsv1alpha1.AddressPool{pool("p", two, nil)},
			[]hostsv1alpha1.AddressClaim{claim("a", "1", time.Hour, asks("192.0.2.2")), claim("a", "2", 0, asks("192.0.2.2")), claim("a", "3", 0, asks("192.0.2.3"))},
			map[string]string{
				"a/1": "192.0.2.2", "a/2": "the address 192.0.2.2 is not in a pool, or it is used (pools of this shoot: 1)",
				"a/3": "the address 192.0.2.3 is not in a pool, or it is used (pools of this shoot: 1)",
			},
			1,
		},
		"a pool of other shoots": {
			[]hostsv1alpha1.AddressPool{pool("p", two, []string{"shoot--dev--*"})},
			[]hostsv1alpha1.AddressClaim{claim("shoot--dev--a", "1", 0), claim("shoot--prod--a", "1", 0)},
			map[string]string{"shoot--dev--a/1": "192.0.2.1", "shoot--prod--a/1": "no IPv4 address is left (pools of this shoot: 0)"},
			1,
		},
		"the other family": {
			[]hostsv1alpha1.AddressPool{pool("p", []string{"192.0.2.1", "2001:db8::/64"}, nil)},
			[]hostsv1alpha1.AddressClaim{claim("a", "1", time.Hour, v6), claim("a", "2", 0)},
			map[string]string{"a/1": "2001:db8::", "a/2": "192.0.2.1"},
			2,
		},
		"a pool that is not valid gives none, and keeps what it gave": {
			[]hostsv1alpha1.AddressPool{pool("p", []string{"192.0.2.1", "x"}, nil, assigned("192.0.2.1", "a", "1"))},
			[]hostsv1alpha1.AddressClaim{claim("a", "1", 0), claim("a", "2", 0)},
			map[string]string{"a/1": "192.0.2.1", "a/2": "no IPv4 address is left (pools of this shoot: 1)"},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			giveAddresses(tc.pools, tc.claims, now)
			got, kept := map[string]string{}, 0
			for _, c := range tc.claims {
				got[c.Namespace+"/"+c.Name] = c.Status.Address + c.Status.Message
			}
			for _, p := range tc.pools {
				kept += len(p.Status.Assigned)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || kept != tc.kept {
				t.Errorf("giveAddresses() keeps %d, want %d (-want +got):\n%s", kept, tc.kept, diff)
			}
			before := (&hostsv1alpha1.AddressPoolList{Items: tc.pools}).DeepCopy().Items
			giveAddresses(tc.pools, tc.claims, now.Add(time.Hour))
			if diff := cmp.Diff(before, tc.pools); diff != "" {
				t.Errorf("a second pass changes pools:\n%s", diff)
			}
		})
	}
}

// A shoot cannot take a whole pool.
func TestAddressesPerShoot(t *testing.T) {
	pools := []hostsv1alpha1.AddressPool{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: hostsv1alpha1.AddressPoolSpec{Addresses: []string{"192.0.2.0/24"}}}}
	var claims []hostsv1alpha1.AddressClaim
	for i := range addressesPerShoot + 1 {
		name := fmt.Sprintf("%02d", i)
		claims = append(claims, hostsv1alpha1.AddressClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)}, Spec: hostsv1alpha1.AddressClaimSpec{Family: corev1.IPv4Protocol},
		})
	}
	giveAddresses(pools, claims, time.Unix(0, 0))
	if last := claims[addressesPerShoot].Status; last.Address != "" || last.Message != "this shoot has 20 addresses, and cannot have more" {
		t.Errorf("after %d addresses: %+v", addressesPerShoot, last)
	}
	if got := len(pools[0].Status.Assigned); got != addressesPerShoot {
		t.Errorf("the pool has given %d addresses", got)
	}
}
