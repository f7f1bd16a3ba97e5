package systemcomponent

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestNetworksOf(t *testing.T) {
	for name, tc := range map[string]struct {
		spec    *corev1beta1.Networking
		status  *corev1beta1.NetworkingStatus
		pods    []string
		dns     []string
		wantErr bool
	}{
		"no network": {},
		"spec": {
			spec: &corev1beta1.Networking{Pods: new("10.4.0.0/16"), Services: new("100.64.0.0/13")},
			pods: []string{"10.4.0.0/16"}, dns: []string{"100.64.0.10"},
		},
		"status instead of spec": {
			spec:   &corev1beta1.Networking{Pods: new("10.4.0.0/16"), Services: new("100.64.0.0/13")},
			status: &corev1beta1.NetworkingStatus{Pods: []string{"10.4.0.0/16", "2001:db8:4::/56"}, Services: []string{"100.64.0.0/13", "2001:db8:5::/112"}},
			pods:   []string{"10.4.0.0/16", "2001:db8:4::/56"}, dns: []string{"100.64.0.10", "2001:db8:5::a"},
		},
		"an address in the range": {
			spec: &corev1beta1.Networking{Services: new("10.0.0.7/24")}, dns: []string{"10.0.0.10"},
		},
		"not a range": {spec: &corev1beta1.Networking{Services: new("10.0.0.7")}, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Networking, shoot.Status.Networking = tc.spec, tc.status
			networks, err := NetworksOf(shoot)
			if (err != nil) != tc.wantErr {
				t.Fatalf("NetworksOf() error %v, want one: %t", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.pods, texts(networks.Pods), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.dns, texts(networks.DNS()), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("DNS() (-want +got):\n%s", diff)
			}
		})
	}
}

func texts[T interface {
	netip.Addr | netip.Prefix
	String() string
}](list []T) []string {
	var out []string
	for _, item := range list {
		out = append(out, item.String())
	}
	return out
}
