package feed

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// What the cache leaves out of objects changes nothing in the graph.
func TestTransform(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(0.2).NumElements(1, 2).MaxDepth(12).Funcs(
		func(r *runtime.RawExtension, _ randfill.Continue) { r.Raw = []byte("{}") },
		// Of other kinds there are no edges.
		func(r *corev1.ObjectReference, c randfill.Continue) {
			*r = corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: c.String(5), Name: "n" + c.String(5)}
		},
		func(r *autoscalingv1.CrossVersionObjectReference, c randfill.Continue) {
			*r = autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "n" + c.String(5)}
		},
	)
	options := ByObject()
	for _, empty := range graph.Watched() {
		kind := reflect.TypeOf(empty).Elem()
		t.Run(kind.Name(), func(t *testing.T) {
			for range 50 {
				obj := reflect.New(kind).Interface().(client.Object)
				fill.Fill(obj)
				want := graph.Of(obj.DeepCopyObject().(client.Object))
				for of, option := range options {
					if reflect.TypeOf(of) != reflect.TypeOf(empty) {
						continue
					}
					transformed, err := option.Transform(obj)
					if err != nil {
						t.Fatal(err)
					}
					obj = transformed.(client.Object)
					if obj.GetManagedFields() != nil {
						t.Error("managed fields are kept")
					}
				}
				if diff := cmp.Diff(want, graph.Of(obj)); diff != "" {
					t.Fatalf("the graph of the transformed object (-whole +transformed):\n%s", diff)
				}
			}
		})
	}
}

func TestHandler(t *testing.T) {
	g := graph.New(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	observed := map[string]int{}
	h := handler{g, graph.Shoot, func(_ graph.Kind, operation string, _ time.Duration) { observed[operation]++ }}
	shoot := func(seed string) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{SeedName: &seed}}
		s.Namespace, s.Name = "garden-a", "s"
		return s
	}
	leads := func(to string) bool {
		return g.LeadsToSeed(graph.Key{Kind: graph.Shoot, Namespace: "garden-a", Name: "s"}, to)
	}
	h.OnAdd(shoot("a"), true)
	if !leads("a") {
		t.Error("an added Shoot does not lead to its seed")
	}
	h.OnUpdate(shoot("a"), shoot("b"))
	if leads("a") || !leads("b") {
		t.Error("a Shoot that moved does not lead to its new seed only")
	}
	// The last state that the informer knew may be an old one, or none.
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "garden-a/s", Obj: shoot("a")})
	if vertices, edges := g.Size(); vertices != 0 || edges != 0 {
		t.Errorf("%d objects and %d edges are left after the deletion", vertices, edges)
	}
	h.OnAdd(shoot("a"), false)
	h.OnDelete(shoot("a"))
	if leads("a") {
		t.Error("a deleted Shoot still leads to its seed")
	}
	if diff := cmp.Diff(map[string]int{createOrUpdate: 3, remove: 2}, observed); diff != "" {
		t.Errorf("observed operations (-want +got):\n%s", diff)
	}
}
