package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func TestBehind(t *testing.T) {
	node := func(name, secret, done string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": secret},
			Annotations: map[string]string{"checksum/cloud-config-data": done},
		}}
		if change != nil {
			change(n)
		}
		return n
	}
	told := map[string]string{"pool": "new"}
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		want  string
	}{
		"no nodes":       {},
		"done":           {nodes: []*corev1.Node{node("a", "pool", "new", nil)}},
		"behind":         {nodes: []*corev1.Node{node("b", "pool", "old", nil), node("a", "pool", "", nil)}, want: "2 nodes do not have their new configuration yet: a, b"},
		"nobody's":       {nodes: []*corev1.Node{node("a", "", "", nil)}},
		"of an old pool": {nodes: []*corev1.Node{node("a", "gone", "old", nil)}},
		"about to go":    {nodes: []*corev1.Node{node("a", "pool", "old", func(n *corev1.Node) { n.Spec.Unschedulable = true })}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := behind(tc.nodes, told); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("behind() is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNodesKeepTheDNSCacheThatTheirPodsAsk(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		enabled     bool
		label, want string
	}{
		"it is wanted":                    {enabled: true, want: "shoot-core-node-local-dns"},
		"it is not, and no node has it":   {label: "false"},
		"it is not, and an old node does": {label: "true", want: "shoot-core-node-local-dns"},
	} {
		t.Run(name, func(t *testing.T) {
			w := example()
			w.shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{NodeLocalDNS: &corev1beta1.NodeLocalDNS{Enabled: tc.enabled}}
			seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&resourcesv1alpha1.ManagedResource{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shoot-core-node-local-dns"},
			}).Build()
			shoot := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"networking.gardener.cloud/node-local-dns-enabled": tc.label}},
			}).Build()
			h := &hosted{world: w, reconciler: &reconciler{Values: Values{SeedClient: seed}}, shootClient: shoot}
			if err := h.dropNodeLocalDNS(t.Context()); err != nil {
				t.Fatal(err)
			}
			left := &resourcesv1alpha1.ManagedResourceList{}
			if err := seed.List(t.Context(), left); err != nil {
				t.Fatal(err)
			}
			got := ""
			for i := range left.Items {
				got = left.Items[i].Name
			}
			if got != tc.want {
				t.Errorf("there is %q, want %q", got, tc.want)
			}
			if err := h.dropNodeLocalDNS(t.Context()); err != nil {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

// The first pass, before the choice is in the status, has the same networks as later ones: what is rendered from them would be rolled.
func TestAllNetworks(t *testing.T) {
	ordered := &corev1beta1.NetworkingStatus{Nodes: []string{"10.0.0.0/16"}, Pods: []string{"10.3.0.0/16"}, Services: []string{"10.4.0.0/16"}}
	chosen := &extensionsv1alpha1.Infrastructure{}
	chosen.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{"10.1.0.0/16"}}
	older := &extensionsv1alpha1.Infrastructure{}
	older.Status.NodesCIDR = new("10.2.0.0/16")
	for name, tc := range map[string]struct {
		status *corev1beta1.NetworkingStatus
		infra  *extensionsv1alpha1.Infrastructure
		want   []string
	}{
		"nothing is chosen":          {ordered, nil, []string{"10.0.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nodes are chosen":           {ordered, chosen, []string{"10.1.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nodes are chosen as before": {ordered, older, []string{"10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"and published":              {withChosen(ordered, chosen), chosen, []string{"10.1.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nothing is ordered":         {nil, chosen, []string{"10.1.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hosted{infra: tc.infra, world: &world{shoot: &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{Networking: tc.status}}}}
			if diff := cmp.Diff(tc.want, h.allNetworks()); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCores(t *testing.T) {
	w := example()
	w.cloudProfile = &corev1beta1.CloudProfile{}
	w.cloudProfile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2")}, {Name: "large", CPU: resource.MustParse("64")}}
	w.shoot.Spec.Provider.Workers = []corev1beta1.Worker{
		{Machine: corev1beta1.Machine{Type: "small"}, Minimum: 3, Maximum: 9},
		{Machine: corev1beta1.Machine{Type: "large"}, Minimum: 1},
		{Machine: corev1beta1.Machine{Type: "unknown"}, Minimum: 7},
	}
	if got := (&hosted{world: w}).cores(); got != 70 {
		t.Errorf("cores() = %d", got)
	}
}

// What the agent of the tunnel runs on goes when a shoot is hibernated, so nobody may wait for it. There is no client to do that with.
func TestHibernationDoesNotWaitForTheTunnel(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
	h := &hosted{world: &world{shoot: shoot}}
	for _, task := range h.nodes() {
		if task.ID == "tunnel" {
			if err := task.Run(t.Context()); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Error("there is no such task")
}
