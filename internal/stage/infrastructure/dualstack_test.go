package infrastructure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// A Network becomes dual-stack when all nodes have pod CIDRs of both IP families, and CoreDNS gets pods with both.
func TestDualStack(t *testing.T) {
	const ipv4, ipv6 = extensionsv1alpha1.IPFamilyIPv4, extensionsv1alpha1.IPFamilyIPv6
	both := []extensionsv1alpha1.IPFamily{ipv4, ipv6}
	for name, tc := range map[string]struct {
		families  []corev1beta1.IPFamily
		existing  []extensionsv1alpha1.IPFamily
		nodes     []int // pod CIDRs of each
		addresses int   // of the pod of CoreDNS
		stopped   bool
		want      []extensionsv1alpha1.IPFamily
		restarts  bool
	}{
		"one family":    {families: []corev1beta1.IPFamily{"IPv4"}, existing: both[:1], nodes: []int{1}, addresses: 1, want: both[:1]},
		"a new cluster": {families: []corev1beta1.IPFamily{"IPv4", "IPv6"}, addresses: 2, want: both},
		"another seed, and a node is left with one":         {families: []corev1beta1.IPFamily{"IPv4", "IPv6"}, nodes: []int{2, 1}, addresses: 1, want: both[:1]},
		"another seed, and the kube-apiserver does not run": {families: []corev1beta1.IPFamily{"IPv4", "IPv6"}, nodes: []int{1}, addresses: 2, stopped: true, want: both},
		"a node is left with one":                           {families: []corev1beta1.IPFamily{"IPv4", "IPv6"}, existing: both[:1], nodes: []int{2, 1}, addresses: 1, want: both[:1]},
		"all nodes have both":                               {families: []corev1beta1.IPFamily{"IPv4", "IPv6"}, existing: both[:1], nodes: []int{2, 2}, addresses: 1, want: both, restarts: true},
		"it has both, and so has DNS":                       {families: []corev1beta1.IPFamily{"IPv4", "IPv6"}, existing: both, nodes: []int{2, 2}, addresses: 2, want: both},
		"it has both, and DNS does not":                     {families: []corev1beta1.IPFamily{"IPv4", "IPv6"}, existing: both, nodes: []int{2, 2}, addresses: 1, want: both, restarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in, _ := newInputs(t, clusters, newShoot(&corev1beta1.Networking{IPFamilies: tc.families, Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16")}))
			in.Result.Infrastructure, in.Hibernated = in.Run.Infrastructure(), tc.stopped
			network := in.Run.Network()
			if tc.existing != nil {
				network.UID, network.Spec.IPFamilies = "1", tc.existing
				create(t, clusters.Seed, network)
			}
			for i, cidrs := range tc.nodes {
				create(t, clusters.Shoot, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.3.1.0/24", "fd00::/64"}[:cidrs]},
				})
			}
			dns := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
			create(t, clusters.Shoot, dns)
			create(t, clusters.Shoot, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns-1", Labels: map[string]string{"k8s-app": "kube-dns"}},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.3.1.2"}, {IP: "fd00::2"}}[:tc.addresses]},
			})
			create(t, clusters.Shoot, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "evicted", Labels: map[string]string{"k8s-app": "kube-dns"}},
				Status:     corev1.PodStatus{Phase: corev1.PodFailed, PodIPs: []corev1.PodIP{{IP: "10.3.1.2"}}},
			})
			families, err := in.families(t.Context(), in.Shoot.Spec.Networking, in.Run.Network())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, families); diff != "" {
				t.Errorf("families (-want +got):\n%s", diff)
			}
			network.Status.IPFamilies = families
			if tc.existing == nil {
				create(t, clusters.Seed, network)
			} else if err := clusters.Seed.Update(t.Context(), network); err != nil {
				t.Fatal(err)
			}
			if err := in.replaceSingleStackDNS(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := clusters.Shoot.Get(t.Context(), client.ObjectKeyFromObject(dns), dns); err != nil {
				t.Fatal(err)
			}
			if restarted := dns.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != ""; restarted != tc.restarts {
				t.Errorf("CoreDNS is restarted: %t, want %t", restarted, tc.restarts)
			}
		})
	}
}

func create(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}
