package coredns

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	for name, v := range map[string]Values{
		"default": {Image: "registry.example/coredns:v1", Addresses: []netip.Addr{netip.MustParseAddr("100.64.0.10")}},
		"dual-stack": {
			Image:          "registry.example/coredns:v1",
			Addresses:      []netip.Addr{netip.MustParseAddr("100.64.0.10"), netip.MustParseAddr("2001:db8::a")},
			CommonSuffixes: []string{"gardener.cloud", ".Example.Com."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, name+".yaml", objects)
		})
	}
}

func TestFor(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Networking = &corev1beta1.Networking{Services: new("100.64.0.0/13")}
	shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{CoreDNS: &corev1beta1.CoreDNS{
		Rewriting: &corev1beta1.CoreDNSRewriting{CommonSuffixes: []string{"gardener.cloud"}},
	}}
	v, err := For(shoot)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Addresses) != 1 || v.Addresses[0].String() != "100.64.0.10" || len(v.CommonSuffixes) != 1 {
		t.Errorf("For() = %+v", v)
	}
}

func TestReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		v    Values
		want int32
	}{
		"by load":      {Values{Nodes: 100, Cores: 1000}, 2},
		"no machines":  {Values{Proportional: true}, 2},
		"few machines": {Values{Proportional: true, Nodes: 32, Cores: 512}, 2},
		"many":         {Values{Proportional: true, Nodes: 33, Cores: 132}, 3},
		"large":        {Values{Proportional: true, Nodes: 10, Cores: 1280}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.v.replicas(); got != tc.want {
				t.Errorf("replicas() = %d, want %d", got, tc.want)
			}
		})
	}
}

// TestRewriting applies the rules of the Corefile as CoreDNS does.
func TestRewriting(t *testing.T) {
	text, err := corefile(Values{CommonSuffixes: []string{"gardener.cloud"}})
	if err != nil {
		t.Fatal(err)
	}
	var rules []*regexp.Regexp
	for _, match := range regexp.MustCompile(`rewrite stop name regex (\S+) \{1\}\. answer auto`).FindAllStringSubmatch(text, -1) {
		rules = append(rules, regexp.MustCompile(match[1]))
	}
	if len(rules) != 2 {
		t.Fatalf("%d rules in:\n%s", len(rules), text)
	}
	for query, want := range map[string]string{
		// Complete names with each domain of a pod's search path.
		"kube-dns.kube-system.svc.cluster.local.default.svc.cluster.local.": "kube-dns.kube-system.svc.cluster.local.",
		"kube-dns.kube-system.svc.cluster.local.svc.cluster.local.":         "kube-dns.kube-system.svc.cluster.local.",
		"kube-dns.kube-system.svc.cluster.local.cluster.local.":             "kube-dns.kube-system.svc.cluster.local.",
		"dashboard.gardener.cloud.default.svc.cluster.local.":               "dashboard.gardener.cloud.",
		"gardener.cloud.svc.cluster.local.":                                 "gardener.cloud.",
		"a.b.gardener.cloud.cluster.local.":                                 "a.b.gardener.cloud.",
		// Names that are not rewritten.
		"kube-dns.kube-system.svc.cluster.local.":         "",
		"kube-dns.default.svc.cluster.local.":             "",
		"dashboard.gardener.cloud.":                       "",
		"mygardener.cloud.default.svc.cluster.local.":     "",
		"dashboard.gardener-cloud.svc.cluster.local.":     "",
		"svc.cluster.local.default.svc.cluster.local.":    "",
		"example.com.default.svc.cluster.local.":          "",
		"gardener.cloud.default.svc.cluster.local.local.": "",
	} {
		got := ""
		for _, rule := range rules {
			if groups := rule.FindStringSubmatch(query); groups != nil {
				got = strings.TrimSuffix(groups[1], ".") + "."
				break
			}
		}
		if got != want {
			t.Errorf("%s becomes %q, want %q", query, got, want)
		}
	}
}
