package nodelocaldns

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	for name, v := range map[string]Values{
		"default": {
			Address: netip.MustParseAddr("169.254.20.10"), ClusterDNS: []netip.Addr{netip.MustParseAddr("100.64.0.10")},
			ClusterOverTCP: true, UpstreamOverTCP: true,
		},
		"ipv6-cluster-only": {
			Address: netip.MustParseAddr("fd30:1319:f1e:230b::1"), ClusterDNS: []netip.Addr{netip.MustParseAddr("2001:db8::a")},
			UpstreamOverTCP: true, ClusterOnly: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v.Image, v.SetupImage = "registry.example/coredns:v1", "registry.example/kube-proxy:v1"
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name+".yaml", objects)
		})
	}
}

func TestFor(t *testing.T) {
	const services = "100.64.0.0/13"
	address, cluster := netip.MustParseAddr("169.254.20.10"), []netip.Addr{netip.MustParseAddr("100.64.0.10")}
	for name, tc := range map[string]struct {
		config *corev1beta1.NodeLocalDNS
		want   Values
	}{
		"defaults": {&corev1beta1.NodeLocalDNS{Enabled: true}, Values{Address: address, ClusterDNS: cluster, ClusterOverTCP: true, UpstreamOverTCP: true}},
		"everything said": {
			&corev1beta1.NodeLocalDNS{
				Enabled: true, ForceTCPToClusterDNS: new(false), ForceTCPToUpstreamDNS: new(false), DisableForwardToUpstreamDNS: new(true),
			},
			Values{Address: address, ClusterDNS: cluster, ClusterOnly: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Networking = &corev1beta1.Networking{Services: new(services)}
			if Enabled(shoot) {
				t.Error("Enabled() without anything said")
			}
			shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{NodeLocalDNS: tc.config}
			if !Enabled(shoot) {
				t.Error("not Enabled()")
			}
			got, err := For(shoot)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("For() (-want +got):\n%s", diff)
			}
		})
	}
}
