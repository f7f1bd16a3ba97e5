package nodelocaldns

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/systemcomponent"
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
		"without-kube-proxy": {
			Address: netip.MustParseAddr("169.254.20.10"), ClusterDNS: []netip.Addr{netip.MustParseAddr("100.64.0.10"), netip.MustParseAddr("2001:db8::a")},
			ClusterOverTCP: true, BehindService: true,
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

// Server blocks for the cluster's DNS server become ones of the cache.
func TestCustomObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		custom, want map[string]string
	}{
		"nothing": {want: map[string]string{}},
		"the port and the address": {
			custom: map[string]string{"a.server": "# a comment\nexample.com:8053 example.org:8053 {\n  forward . 192.0.2.1 {\n    force_tcp\n  }\n  cache 10 # seconds\n}\n"},
			want:   map[string]string{"a.server": "example.com:53 example.org:53 {\n    bind 169.254.20.10\n  forward . 192.0.2.1 {\n    force_tcp\n  }\n  cache 10 # seconds\n}\n"},
		},
		"zones in several lines, without a port": {
			custom: map[string]string{"a.server": "example.com,\nexample.org\n{\n  whoami\n}\n"},
			want:   map[string]string{"a.server": "example.com example.org {\n    bind 169.254.20.10\n  whoami\n}\n"},
		},
		"a snippet": {
			custom: map[string]string{"a.server": "(common) {\n  errors\n}\na.b:8053 {\n  import common\n}"},
			want:   map[string]string{"a.server": "(common) {\n  errors\n}\na.b:53 {\n    bind 169.254.20.10\n  import common\n}\n"},
		},
		"zones of the cache": {
			custom: map[string]string{"a.server": ".:8053 {\n  whoami\n}\ncluster.local.:53 a.b {\n  whoami\n}\n"},
			want:   map[string]string{"a.server": "a.b {\n    bind 169.254.20.10\n  whoami\n}\n"},
		},
		"no server blocks": {
			custom: map[string]string{
				"a.override": "log", "b.server": "a.b {", "c.server": "}", "d.server": "a.b", "e.server": "# nothing", "f.server": "a.b {\n} c.d {\n}",
				"long.server": "a.b {\n" + strings.Repeat("whoami\n", 40000) + "}",
			},
			want: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := CustomObjects(Values{Address: netip.MustParseAddr("169.254.20.10")}, tc.custom)
			if diff := cmp.Diff(tc.want, objects[0].(*corev1.ConfigMap).Data); diff != "" {
				t.Errorf("CustomObjects() (-want +got):\n%s", diff)
			}
		})
	}
}

// Without kube-proxy, the network may lead queries to the address of the cluster's DNS server to the cache, which it has moved into the network of pods. Pods
// would have no DNS server at the address of the node. The extension for Cilium also moves it where kube-proxy runs.
func TestResolvers(t *testing.T) {
	for name, tc := range map[string]struct {
		kubeProxy *bool
		network   string
		want      []string
		behind    bool
	}{
		"kube-proxy":         {want: []string{"169.254.20.10"}},
		"kube-proxy is on":   {kubeProxy: new(true), want: []string{"169.254.20.10"}},
		"without kube-proxy": {kubeProxy: new(false), want: []string{"100.64.0.10", "2001:db8::a"}, behind: true},
		"Calico":             {network: "calico", want: []string{"169.254.20.10"}},
		"Cilium with kube-proxy": {
			kubeProxy: new(true), network: "cilium", want: []string{"100.64.0.10", "2001:db8::a"}, behind: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Enabled: tc.kubeProxy}
			if tc.network != "" {
				shoot.Spec.Networking = &corev1beta1.Networking{Type: &tc.network}
			}
			shoot.Status.Networking = &corev1beta1.NetworkingStatus{Services: []string{"100.64.0.0/13", "2001:db8::/108"}}
			networks, err := systemcomponent.NetworksOf(shoot)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, address := range Resolvers(shoot, networks) {
				got = append(got, address.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Resolvers() (-want +got):\n%s", diff)
			}
			v, err := For(shoot)
			if err != nil {
				t.Fatal(err)
			}
			if v.BehindService != tc.behind {
				t.Errorf("BehindService is %v", v.BehindService)
			}
			custom := CustomObjects(v, map[string]string{"a.server": "a.b {\n  whoami\n}\n"})[0].(*corev1.ConfigMap).Data["a.server"]
			if got := strings.Contains(custom, "import /run/node-local-dns/listen"); got != tc.behind {
				t.Errorf("the server block of a user is\n%s", custom)
			}
		})
	}
}
