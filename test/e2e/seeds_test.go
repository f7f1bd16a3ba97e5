//go:build e2e

package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
)

// secondSeed is the further seed of a landscape with two, and its cluster.
const secondSeed = "local-2"

// testSeeds adds a seed to a landscape that has one. A shoot on each works, and what has been stolen from one seed does not open the other.
func testSeeds(t *testing.T, l *landscape) {
	l.basic(t, "a second seed joins the garden", func(t *testing.T) { l.run(t, "up", "--seeds=2", "--without-shoot") })
	second := connect(t, strings.TrimSpace(l.run(t, "kubeconfig", secondSeed)))
	mine, theirs := sample(t, example.ShootWorkerless), sample(t, example.ShootWorkerless)
	mine.Name, mine.Spec.SeedName = "mine", new("local")
	theirs.Name, theirs.Spec.SeedName = "theirs", new(secondSeed)
	theirs.Spec.Resources = l.referred(t, theirs.Namespace, theirs.Name)
	for _, shoot := range []*corev1beta1.Shoot{mine, theirs} {
		l.create(t, shoot) // until the end of all parts
	}
	l.basic(t, "a shoot on each seed", func(t *testing.T) {
		for _, shoot := range []*corev1beta1.Shoot{mine, theirs} {
			key := client.ObjectKeyFromObject(shoot)
			l.awaitShoot(t, key, kube.ShootHealthy)
			if err := l.shoot(t, key).client.List(t.Context(), &corev1.NamespaceList{}); err != nil {
				t.Errorf("shoot %s: %v", key, err)
			}
		}
	})
	l.timed(t, "names of shoots of both seeds resolve in both", func(t *testing.T) {
		for name, cluster := range map[string]cluster{"local": l.cluster, secondSeed: second} {
			names := cluster.deploy(t, "names", func(*appsv1.Deployment) {})
			for _, shoot := range []*corev1beta1.Shoot{mine, theirs} {
				current := &corev1beta1.Shoot{}
				if err := l.garden.client.Get(t.Context(), client.ObjectKeyFromObject(shoot), current); err != nil {
					t.Fatal(err)
				}
				if got := names.get(t, "/resolve?name=api."+*current.Spec.DNS.Domain); !strings.HasPrefix(got, "[172.30.") {
					t.Errorf("in seed %s, the API server of shoot %s is at %s", name, shoot.Name, got)
				}
			}
		}
	})
	l.timed(t, "what is stolen from one seed does not open the other", func(t *testing.T) { l.testStolenGardenlet(t, mine, theirs) })
	l.timed(t, "seeds and shoots are still healthy", func(t *testing.T) {
		l.awaitStatus(t)
		if out := l.run(t, "status"); !strings.Contains(out, secondSeed+"-0") {
			t.Errorf("the status lacks the machine of the second seed:\n%s", out)
		}
	})
}

// referred creates a Secret, a ConfigMap and a WorkloadIdentity for a shoot, and returns its references to them.
func (l *landscape) referred(t *testing.T, namespace, name string) (references []corev1beta1.NamedResourceReference) {
	t.Helper()
	for _, yaml := range []string{
		`{"apiVersion":"v1","kind":"Secret","stringData":{"key":"private"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","data":{"key":"private"}}`,
		`{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","spec":{"audiences":["cloud"],"targetSystem":{"type":"local"}}}`,
	} {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(yaml)); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace)
		object.SetName(name)
		l.apply(t, object)
		references = append(references, corev1beta1.NamedResourceReference{Name: strings.ToLower(object.GetKind()), ResourceRef: autoscalingv1.CrossVersionObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: name,
		}})
	}
	return references
}

// apply creates objects or changes them, as an administrator.
func (l *landscape) apply(t *testing.T, objects ...client.Object) {
	t.Helper()
	if err := kube.Apply(t.Context(), l.garden.client, "e2e", objects...); err != nil {
		t.Fatal(err)
	}
}
