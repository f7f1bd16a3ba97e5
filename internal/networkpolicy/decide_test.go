package networkpolicy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

func service(annotations ...string) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "grm", Annotations: map[string]string{}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "grm"},
			Ports: []corev1.ServicePort{
				{Name: "server", Port: 443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(10250)},
				{Name: "again", Port: 444, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(10250)},
			},
		},
	}
	for i := 0; i < len(annotations); i += 2 {
		s.Annotations["networking.resources.gardener.cloud/"+annotations[i]] = annotations[i+1]
	}
	return s
}

func namespace(name string, labels ...string) corev1.Namespace {
	n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/metadata.name": name}}}
	for _, label := range labels {
		n.Labels[label] = "yes"
	}
	return n
}

const fromNamespaceB = `[{"matchLabels":{"kubernetes.io/metadata.name":"b"}}]`

// summary has the name, ports, selected pods and peers of each policy.
func summary(t *testing.T, list []*networkingv1.NetworkPolicy) []string {
	t.Helper()
	lines := []string{}
	for _, p := range list {
		var peers []networkingv1.NetworkPolicyPeer
		var ports []networkingv1.NetworkPolicyPort
		for _, rule := range p.Spec.Ingress {
			peers, ports = append(peers, rule.From...), append(ports, rule.Ports...)
		}
		for _, rule := range p.Spec.Egress {
			peers, ports = append(peers, rule.To...), append(ports, rule.Ports...)
		}
		raw, err := yaml.Marshal(struct {
			Of    map[string]string                `json:"of"`
			Peers []networkingv1.NetworkPolicyPeer `json:"peers"`
		}{p.Spec.PodSelector.MatchLabels, peers})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(raw)), " ")
		text = strings.ReplaceAll(text, "networking.resources.gardener.cloud/", "")
		text = strings.ReplaceAll(text, "matchLabels: ", "")
		lines = append(lines, p.Namespace+"/"+p.Name+" "+portList(ports)+" "+text)
	}
	return lines
}

func TestPolicies(t *testing.T) {
	own := []string{
		"a/egress-to-grm-tcp-10250 TCP/10250 of: to-grm-tcp-10250: allowed peers: - podSelector: app: grm",
		"a/ingress-to-grm-tcp-10250 TCP/10250 of: app: grm peers: - podSelector: to-grm-tcp-10250: allowed",
	}
	noSelector := service()
	noSelector.Spec.Selector = nil
	deleted := namespace("b")
	deleted.DeletionTimestamp = &metav1.Time{}
	ingress := networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{
			{Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "grm", Port: networkingv1.ServiceBackendPort{Number: 443}}}},
			{Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "other", Port: networkingv1.ServiceBackendPort{Number: 444}}}},
		}}},
	}}}}
	named := service()
	named.Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromString("dns")}, {Port: 80}}
	for name, tc := range map[string]struct {
		in   input
		want []string
		err  string
	}{
		"no Service":      {want: []string{}},
		"no selector":     {in: input{service: noSelector}, want: []string{}},
		"one port, twice": {in: input{service: service()}, want: own},
		"a named port, and a port without target": {in: input{service: named}, want: []string{
			"a/egress-to-grm-tcp-80 TCP/80 of: to-grm-tcp-80: allowed peers: - podSelector: app: grm",
			"a/egress-to-grm-udp-dns UDP/dns of: to-grm-udp-dns: allowed peers: - podSelector: app: grm",
			"a/ingress-to-grm-tcp-80 TCP/80 of: app: grm peers: - podSelector: to-grm-tcp-80: allowed",
			"a/ingress-to-grm-udp-dns UDP/dns of: app: grm peers: - podSelector: to-grm-udp-dns: allowed",
		}},
		"from another namespace, not from its own twice": {
			in: input{service: service("namespace-selectors", `[{"matchLabels":{"x":"yes"}}, {"matchLabels":{"y":"yes"}}]`), namespaces: []corev1.Namespace{
				namespace("a", "x"), namespace("b", "x", "y"), namespace("c", "z"),
			}},
			want: slices.Concat(own, []string{
				"a/ingress-to-grm-tcp-10250-from-b TCP/10250 of: app: grm peers: - namespaceSelector: kubernetes.io/metadata.name: b podSelector: to-a-grm-tcp-10250: allowed",
				"b/egress-to-a-grm-tcp-10250 TCP/10250 of: to-a-grm-tcp-10250: allowed peers: - namespaceSelector: kubernetes.io/metadata.name: a podSelector: app: grm",
			}),
		},
		"from a namespace in deletion": {
			in: input{service: service("namespace-selectors", fromNamespaceB), namespaces: []corev1.Namespace{deleted}}, want: own,
		},
		"no selectors of namespaces": {
			in: input{service: service("namespace-selectors", "[]"), namespaces: []corev1.Namespace{namespace("b")}}, want: own,
		},
		"with an alias": {
			in: input{service: service("namespace-selectors", fromNamespaceB, "pod-label-selector-namespace-alias", "all-foos"), namespaces: []corev1.Namespace{namespace("b")}},
			want: slices.Concat(own, []string{
				"a/ingress-to-grm-tcp-10250-from-b TCP/10250 of: app: grm peers: - namespaceSelector: kubernetes.io/metadata.name: b podSelector: to-all-foos-grm-tcp-10250: allowed",
				"b/egress-to-a-grm-tcp-10250 TCP/10250 of: to-all-foos-grm-tcp-10250: allowed peers: - namespaceSelector: kubernetes.io/metadata.name: a podSelector: app: grm",
			}),
		},
		"a label of its own": {
			in: input{service: service("from-all-bars-allowed-ports", `[{"port":8080,"protocol":"TCP"}]`, "namespace-selectors", fromNamespaceB), namespaces: []corev1.Namespace{namespace("b")}},
			want: []string{
				own[0],
				"a/egress-to-grm-tcp-8080-via-all-bars TCP/8080 of: to-all-bars: allowed peers: - podSelector: app: grm",
				own[1],
				"a/ingress-to-grm-tcp-10250-from-b TCP/10250 of: app: grm peers: - namespaceSelector: kubernetes.io/metadata.name: b podSelector: to-a-grm-tcp-10250: allowed",
				"a/ingress-to-grm-tcp-8080-via-all-bars TCP/8080 of: app: grm peers: - podSelector: to-all-bars: allowed",
				"a/ingress-to-grm-tcp-8080-via-all-bars-from-b TCP/8080 of: app: grm peers: - namespaceSelector: kubernetes.io/metadata.name: b podSelector: to-a-all-bars: allowed",
				"b/egress-to-a-grm-tcp-10250 TCP/10250 of: to-a-grm-tcp-10250: allowed peers: - namespaceSelector: kubernetes.io/metadata.name: a podSelector: app: grm",
				"b/egress-to-a-grm-tcp-8080-via-all-bars TCP/8080 of: to-a-all-bars: allowed peers: - namespaceSelector: kubernetes.io/metadata.name: a podSelector: app: grm",
			},
		},
		"from everywhere": {
			in: input{service: service("from-world-to-ports", `[{"port":"10250","protocol":"TCP"}]`)},
			want: slices.Concat(own, []string{
				"a/ingress-to-grm-from-world TCP/10250 of: app: grm peers: - namespaceSelector: {} podSelector: {} - ipBlock: cidr: 0.0.0.0/0 - ipBlock: cidr: ::/0",
			}),
		},
		"from everywhere to all ports": {
			in: input{service: service("from-world-to-ports", `[]`)},
			want: slices.Concat(own, []string{
				"a/ingress-to-grm-from-world  of: app: grm peers: - namespaceSelector: {} podSelector: {} - ipBlock: cidr: 0.0.0.0/0 - ipBlock: cidr: ::/0",
			}),
		},
		"through an Ingress": {
			in: input{
				service: service(), ingresses: []networkingv1.Ingress{ingress},
				ingressController: &IngressController{Namespace: "default", PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"foo": "bar"}}},
			},
			want: slices.Concat(own, []string{
				"a/ingress-to-grm-tcp-10250-from-ingress-controller TCP/10250 of: app: grm peers: - namespaceSelector: kubernetes.io/metadata.name: default podSelector: foo: bar",
				"default/egress-to-a-grm-tcp-10250-from-ingress-controller TCP/10250 of: foo: bar peers: - namespaceSelector: kubernetes.io/metadata.name: a podSelector: app: grm",
			}),
		},
		"invalid annotations do not affect the rest": {
			in:   input{service: service("namespace-selectors", "{", "from-x-allowed-ports", "[{}]", "from-world-to-ports", "all")},
			want: own, err: "from-x-allowed-ports: port 0 has no number",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := policies(tc.in)
			if diff := cmp.Diff(slices.Sorted(slices.Values(tc.want)), slices.Sorted(slices.Values(summary(t, got))), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("policies() (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
		})
	}
}

func TestDescriptions(t *testing.T) {
	got, err := policies(input{service: service()})
	if err != nil {
		t.Fatal(err)
	}
	want := "Allows egress TCP traffic to port 10250 from pods running in namespace a labeled with " +
		"map[networking.resources.gardener.cloud/to-grm-tcp-10250:allowed] to pods selected by the a/grm service selector."
	if diff := cmp.Diff(want, got[0].Annotations["gardener.cloud/description"]); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
}
