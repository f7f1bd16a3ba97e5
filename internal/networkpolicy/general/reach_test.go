package general

import (
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// reaches says whether policies allow pods with labels to connect to an address outside of the cluster: at least one policy that selects them
// has a rule for it. All ports are meant.
func reaches(t *testing.T, policies []*networkingv1.NetworkPolicy, pod map[string]string, to string) bool {
	t.Helper()
	address := netip.MustParseAddr(to)
	contains := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(address) }
	isolated := false
	for _, policy := range policies {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labels.Set(pod)) {
			continue
		}
		isolated = true
		for _, rule := range policy.Spec.Egress {
			for _, peer := range rule.To {
				if peer.IPBlock == nil || len(rule.Ports) > 0 || !contains(peer.IPBlock.CIDR) {
					continue
				}
				excepted := false
				for _, except := range peer.IPBlock.Except {
					excepted = excepted || contains(except)
				}
				if !excepted {
					return true
				}
			}
		}
	}
	return !isolated
}

func TestReach(t *testing.T) {
	with := func(names ...string) map[string]string {
		out := map[string]string{}
		for _, name := range names {
			out[name] = constants.NetworkPolicyAllowed
		}
		return out
	}
	// The kube-apiserver of a shoot has these labels: the URLs of webhooks and issuers are its owner's.
	controlPlane := with(constants.NetworkPolicyToDNS, constants.NetworkPolicyToPublicNetworks, constants.NetworkPolicyToPrivateNetworks)
	own := []string{"10.1.0.0/16", "10.2.0.0/16", "172.30.0.0/24"}
	for name, tc := range map[string]struct {
		networks Networks
		pod      map[string]string
		yes, no  []string
	}{
		"a control plane": {
			networks: Networks{Own: own},
			pod:      controlPlane,
			yes:      []string{"8.8.8.8", "2001:db8::1", "10.3.0.1", "192.168.1.1", "fd01::1", "100.64.0.1"},
			no: []string{
				"169.254.169.254", "fd00:ec2::254", "169.254.170.2", "fe80::1", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
				"10.1.2.3", "10.2.0.1", "172.30.0.2", // pods of other shoots, Services and nodes of the seed
			},
		},
		"a control plane of a seed with a gateway between IPv6 and IPv4": {
			networks: Networks{Own: own, Blocked: []string{"10.9.0.0/16", "2001:db8:9::/48"}},
			pod:      controlPlane,
			yes:      []string{"64:ff9b::808:808", "64:ff9b:1::808:808", "2002:808:808::1", "64:ff9b::a03:1", "64:ff9b::c0a8:101"},
			no: []string{
				"64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1", "64:ff9b::6464:64c8", // metadata services
				"64:ff9b::a01:203", "64:ff9b:1::a01:203", "64:ff9b::a02:1", "64:ff9b::ac1e:2", "2002:a01:203::1", // pods, Services and nodes
				"64:ff9b::a09:101", "2001:db8:9::1",
			},
		},
		"a pod that reaches public networks only, with such a gateway": {
			networks: Networks{Own: own}, pod: with(constants.NetworkPolicyToPublicNetworks),
			yes: []string{"64:ff9b::808:808"}, no: []string{"64:ff9b::a03:1", "64:ff9b::c0a8:101", "64:ff9b::a9fe:a9fe", "2002:a03:1::1"},
		},
		"a control plane of a seed with blocked ranges": {
			networks: Networks{Own: own, Blocked: []string{"192.168.0.0/16", "10.9.0.0/16", "8.8.8.0/24"}},
			pod:      controlPlane,
			yes:      []string{"10.3.0.1", "8.8.4.4"},
			no:       []string{"192.168.1.1", "10.9.1.1", "8.8.8.8", "169.254.169.254"},
		},
		"a control plane of a seed that blocks more than a private range": {
			networks: Networks{Own: []string{"172.16.0.0/11"}, Blocked: []string{"10.0.0.0/7", "0.0.0.0/1"}},
			pod:      controlPlane,
			yes:      []string{"192.168.1.1", "200.1.1.1"},
			no:       []string{"10.1.1.1", "8.8.8.8", "172.17.0.1"},
		},
		"a pod that may": {
			networks: Networks{Own: own, Blocked: []string{"10.9.0.0/16"}},
			pod:      with(constants.NetworkPolicyToBlockedCIDRs),
			yes:      []string{"169.254.169.254", "fd00:ec2::254", "10.9.1.1"},
			no:       []string{"8.8.8.8", "10.1.2.3"},
		},
		"a pod without labels": {networks: Networks{Own: own}, no: []string{"8.8.8.8", "10.3.0.1", "169.254.169.254"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := policies(tc.networks, nil)
			for _, to := range tc.yes {
				if !reaches(t, all, tc.pod, to) {
					t.Errorf("%s cannot be reached", to)
				}
			}
			for _, to := range tc.no {
				if reaches(t, all, tc.pod, to) {
					t.Errorf("%s can be reached", to)
				}
			}
		})
	}
}
