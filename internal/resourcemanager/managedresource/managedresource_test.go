package managedresource_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/resourcemanager/managedresource"
	"gardener.cloud/gardener/test/env"
)

// garden is a cluster with a controller that is source and target in one.
type garden struct {
	client.WithWatch
	config *rest.Config
	// reads and writes count the controller's requests for what it manages.
	reads, writes atomic.Int64
	// refuse returns which requests of the controller fail.
	refuse atomic.Pointer[func(*http.Request) bool]
}

func start(t *testing.T) *garden {
	t.Helper()
	e := env.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{resourcesv1alpha1.AddToScheme, apiextensionsv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	g := &garden{config: rest.CopyConfig(e.Config)}
	definitions, err := crds.Resources()
	if err != nil {
		t.Fatal(err)
	}
	if g.WithWatch, err = client.NewWithWatch(e.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), g, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	env.AwaitServed[*resourcesv1alpha1.ManagedResource](t, g)
	config := rest.CopyConfig(e.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if refuse := g.refuse.Load(); refuse != nil && (*refuse)(request) {
				return nil, errors.New("refused by the test")
			}
			switch {
			case strings.Contains(request.URL.Path, "/managedresources/"): // the status
			case request.Method != http.MethodGet:
				g.writes.Add(1)
			case !request.URL.Query().Has("watch") && !request.URL.Query().Has("limit"):
				g.reads.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	mgr, err := manager.New(config, manager.Options{Scheme: scheme, Logger: process.NewLogger(t.Output(), "debug", "text"), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	managed, err := managedresource.NewCache(mgr, resourcesv1alpha1.GardenerManager, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(managed); err != nil {
		t.Fatal(err)
	}
	if err := managedresource.Add(t.Context(), mgr, mgr, managed, managedresource.Values{
		Class: resourcesv1alpha1.DefaultResourceClass, Concurrency: 5, SyncPeriod: time.Hour, ManagedBy: resourcesv1alpha1.GardenerManager,
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// create creates a namespace with a ManagedResource of manifests in it.
func (g *garden) create(t *testing.T, name, manifests string, change ...func(*resourcesv1alpha1.ManagedResource)) *resourcesv1alpha1.ManagedResource {
	t.Helper()
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "mr"},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{{Name: "manifests"}}},
	}
	for _, c := range change {
		c(mr)
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "manifests"}, StringData: map[string]string{"objects.yaml": manifests}},
		mr,
	} {
		if err := g.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return mr
}

func (g *garden) setManifests(t *testing.T, namespace, manifests string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manifests"}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{"objects.yaml":%q}}`, manifests))
	if err := g.Patch(t.Context(), secret, patch); err != nil {
		t.Fatal(err)
	}
}

// awaitApplied waits for a status of the condition ResourcesApplied and a text in its message.
func (g *garden) awaitApplied(t *testing.T, mr *resourcesv1alpha1.ManagedResource, want corev1beta1.ConditionStatus, text string) *resourcesv1alpha1.ManagedResource {
	t.Helper()
	return env.Await(t, g, mr, func(mr *resourcesv1alpha1.ManagedResource) error {
		condition := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
		if condition == nil || condition.Status != want || !strings.Contains(condition.Message, text) ||
			want == corev1beta1.ConditionTrue && mr.Status.ObservedGeneration != mr.Generation {
			return fmt.Errorf("conditions are %+v", mr.Status.Conditions)
		}
		return nil
	})
}

// refusing makes requests of the controller fail while a function runs.
func (g *garden) refusing(which func(*http.Request) bool, run func()) {
	g.refuse.Store(&which)
	defer g.refuse.Store(nil)
	run()
}

func configMap(namespace, name, data string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {key: %q}\n", name, namespace, data)
}

// remove deletes a ManagedResource, and waits until it is gone.
func (g *garden) remove(t *testing.T, mr *resourcesv1alpha1.ManagedResource) {
	t.Helper()
	if err := g.Delete(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, g, mr)
}

func hasData(want map[string]string) func(*corev1.ConfigMap) error {
	return func(c *corev1.ConfigMap) error {
		if diff := cmp.Diff(want, c.Data); diff != "" {
			return fmt.Errorf("data (-want +got):\n%s", diff)
		}
		return nil
	}
}

func deployment(namespace, name string, replicas int) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s, labels: {own: label}}
spec:
  replicas: %d
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - {name: x, image: "registry.example/x:v1"}
`, name, namespace, replicas)
}

func TestManagedResources(t *testing.T) {
	g := start(t)

	t.Run("apply, revert changes, prune and delete", g.life)
	t.Run("labels of other clients are kept unless they are overwritten", g.labels)
	t.Run("an autoscaler decides on replicas", g.autoscaler)
	t.Run("failures are retried with backoff, and reported once", g.failures)
	t.Run("a kind and its objects in one ManagedResource, and the kind is deleted", g.kind)
	t.Run("a kind that cannot be watched does not block for long", g.unwatchable)
	t.Run("claims are deleted with their StatefulSet, also after an error", g.claims)
	t.Run("objects are applied when the process of the class before has removed its finalizer", g.handover)
	t.Run("objects that are kept", g.kept)
	t.Run("errors are reported and nothing is deleted", g.invalid)
	t.Run("compressed, and the class changes", g.compressed)
	t.Run("finalizers are removed after the grace period", g.finalizers)
	t.Run("200 objects, and then nothing", g.many)
}

func (g *garden) life(t *testing.T) {
	step := env.Story(t)
	const ns = "heal"
	step("objects are applied")
	mr := g.create(t, ns, configMap(ns, "a", "1")+configMap(ns, "b", "1")+deployment(ns, "d", 1), func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Spec.InjectLabels = map[string]string{"injected": "yes"}
	})
	applied := g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "All resources are applied")
	if got := len(applied.Status.Resources); got != 3 || applied.Status.SecretsDataChecksum == nil {
		t.Errorf("status names %d resources", got)
	}
	a := env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), hasData(map[string]string{"key": "1"}))
	if a.Annotations[resourcesv1alpha1.OriginAnnotation] != "heal/mr" || a.Labels[resourcesv1alpha1.ManagedBy] != "gardener" || a.Labels["injected"] != "yes" {
		t.Errorf("metadata %+v", a.ObjectMeta)
	}
	d := env.Await(t, g, env.Named[*appsv1.Deployment](ns, "d"), env.Exists)
	if d.Spec.Template.Labels["injected"] != "yes" {
		t.Error("pods do not have the injected label")
	}

	step("changes by other clients are reverted")
	a.Data = map[string]string{"key": "2", "more": "3"}
	if err := g.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), hasData(map[string]string{"key": "1"}))
	patch := client.RawPatch("application/json-patch+json", []byte(`[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"y","image":"y"}},{"op":"remove","path":"/metadata/labels/own"}]`))
	if err := g.Patch(t.Context(), d, patch); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, env.Named[*appsv1.Deployment](ns, "d"), func(d *appsv1.Deployment) error {
		if len(d.Spec.Template.Spec.Containers) != 1 || d.Labels["own"] != "label" {
			return fmt.Errorf("%d containers, labels %v", len(d.Spec.Template.Spec.Containers), d.Labels)
		}
		return nil
	})
	if err := g.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), func(again *corev1.ConfigMap) error {
		if again.UID == a.UID {
			return fmt.Errorf("it is the old one")
		}
		return nil
	})

	step("objects that the manifests lack are deleted")
	g.setManifests(t, ns, configMap(ns, "a", "4"))
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), hasData(map[string]string{"key": "4"}))
	env.AwaitGone(t, g, env.Named[*corev1.ConfigMap](ns, "b"))
	env.AwaitGone(t, g, env.Named[*appsv1.Deployment](ns, "d"))

	step("all are deleted with the ManagedResource")
	if err := g.Delete(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, g, env.Named[*resourcesv1alpha1.ManagedResource](ns, "mr"))
	env.AwaitGone(t, g, env.Named[*corev1.ConfigMap](ns, "a"))
}

func (g *garden) labels(t *testing.T) {
	const ns = "labels"
	manifest := func(labels string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: %s, labels: {%s}}\n", ns, labels)
	}
	mr := g.create(t, ns, manifest("x: one, w: two"))
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}}
	if err := g.Patch(t.Context(), a, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"other":"z","x":"changed"}}}`))); err != nil {
		t.Fatal(err)
	}
	labels := func(want map[string]string) func(*corev1.ConfigMap) error {
		return func(c *corev1.ConfigMap) error {
			want[resourcesv1alpha1.ManagedBy] = "gardener"
			if diff := cmp.Diff(want, c.Labels); diff != "" {
				return fmt.Errorf("labels (-want +got):\n%s", diff)
			}
			return nil
		}
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), labels(map[string]string{"x": "one", "w": "two", "other": "z"}))
	g.setManifests(t, ns, manifest("x: one"))
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), labels(map[string]string{"x": "one", "other": "z"}))
	if err := g.Patch(t.Context(), mr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"forceOverwriteLabels":true}}`))); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), labels(map[string]string{"x": "one"}))
}

func (g *garden) autoscaler(t *testing.T) {
	const ns = "scaled"
	mr := g.create(t, ns, deployment(ns, "free", 1)+deployment(ns, "scaled", 1))
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	if err := g.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scaled"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "scaled"}, MaxReplicas: 5,
	}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scaled", "free"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if err := g.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3,"minReadySeconds":7}}`))); err != nil {
			t.Fatal(err)
		}
		want := map[string]int32{"scaled": 3, "free": 1}[name]
		env.Await(t, g, env.Named[*appsv1.Deployment](ns, name), func(d *appsv1.Deployment) error {
			if *d.Spec.Replicas != want || d.Spec.MinReadySeconds != 0 {
				return fmt.Errorf("%d replicas, want %d; minReadySeconds %d", *d.Spec.Replicas, want, d.Spec.MinReadySeconds)
			}
			return nil
		})
	}
	// An autoscaler does not scale to zero, nor from zero.
	for _, want := range []int32{0, 2} {
		g.setManifests(t, ns, deployment(ns, "scaled", int(want)))
		env.Await(t, g, env.Named[*appsv1.Deployment](ns, "scaled"), func(d *appsv1.Deployment) error {
			if *d.Spec.Replicas != want {
				return fmt.Errorf("%d replicas, want %d", *d.Spec.Replicas, want)
			}
			return nil
		})
	}
}

func (g *garden) failures(t *testing.T) {
	const ns = "failing"
	mr := g.create(t, ns, configMap(ns, "a", "1")+configMap("missing", "b", "1"))
	g.awaitApplied(t, mr, corev1beta1.ConditionFalse, `namespaces "missing" not found`)
	writes, versions := g.writes.Load(), map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_ = kube.Await(ctx, g, &resourcesv1alpha1.ManagedResourceList{}, func(list []*resourcesv1alpha1.ManagedResource) error { // it ends with the time
		versions[list[0].ResourceVersion] = true
		return errors.New("go on")
	}, nil, client.InNamespace(ns))
	if got := g.writes.Load() - writes; got > 50 {
		t.Errorf("%d writes in 3 seconds", got)
	}
	if len(versions) > 2 {
		t.Errorf("the ManagedResource was written %d times without a change", len(versions)-1)
	}
	g.remove(t, mr) // its writes would be counted in other tests
}

func (g *garden) kind(t *testing.T) {
	const ns = "kind"
	const manifests = `---
apiVersion: example.org/v1
kind: Thing
metadata: {name: a, namespace: kind}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
	mr := g.create(t, ns, manifests)
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	thing := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "example.org/v1", Kind: "Thing"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"},
	}
	before := env.Await(t, g, thing, env.Exists)
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.org"}}
	if err := g.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, thing, func(again *metav1.PartialObjectMetadata) error {
		if again.UID == before.UID {
			return errors.New("it is the old one")
		}
		return nil
	})
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	if err := g.Delete(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, g, env.Named[*resourcesv1alpha1.ManagedResource](ns, "mr"))
	env.AwaitGone(t, g, env.Named[*apiextensionsv1.CustomResourceDefinition]("", "things.example.org"))
}

func (g *garden) unwatchable(t *testing.T) {
	const ns = "unseen"
	var manifests strings.Builder
	for i := range 80 {
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l%d, namespace: %s}\nspec: {limits: [{type: Pod}]}\n", i, ns)
	}
	g.refusing(func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/limitranges")
	}, func() {
		g.awaitApplied(t, g.create(t, ns, manifests.String()), corev1beta1.ConditionTrue, "") // within 20 seconds
	})
}

func (g *garden) claims(t *testing.T) {
	const ns = "claims"
	mr := g.create(t, ns, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s, namespace: claims}
spec:
  selector: {matchLabels: {app: x}}
  serviceName: s
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: x, image: x}]}
`, func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.DeletePersistentVolumeClaims = new(true) })
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	if err := g.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data-s-0", Labels: map[string]string{"app": "x"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	g.refusing(func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/persistentvolumeclaims")
	}, func() {
		if err := g.Delete(t.Context(), mr); err != nil {
			t.Fatal(err)
		}
		g.awaitApplied(t, mr, corev1beta1.ConditionFalse, "refused by the test")
	})
	env.AwaitGone(t, g, env.Named[*resourcesv1alpha1.ManagedResource](ns, "mr"))
	env.Await(t, g, env.Named[*corev1.PersistentVolumeClaim](ns, "data-s-0"), func(claim *corev1.PersistentVolumeClaim) error {
		if claim.DeletionTimestamp == nil { // no controller removes its finalizer here
			return errors.New("it is not deleted")
		}
		return nil
	})
}

func (g *garden) handover(t *testing.T) {
	const ns, finalizer = "handover", resourcesv1alpha1.FinalizerName + "-other"
	mr := g.create(t, ns, configMap(ns, "a", "1"), func(mr *resourcesv1alpha1.ManagedResource) { mr.Finalizers = []string{finalizer} })
	g.awaitApplied(t, g.create(t, ns+"-later", configMap(ns+"-later", "a", "1")), corev1beta1.ConditionTrue, "")
	if err := g.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{finalizer}, mr.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if err := g.Patch(t.Context(), mr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), hasData(map[string]string{"key": "1"}))
}

func (g *garden) kept(t *testing.T) {
	const ns = "stay"
	manifests := configMap(ns, "mine", "1") +
		strings.Replace(configMap(ns, "created-once", "1"), "namespace: stay", "namespace: stay, annotations: {resources.gardener.cloud/ignore: 't'}", 1) +
		strings.Replace(configMap(ns, "kept", "1"), "namespace: stay", "namespace: stay, annotations: {resources.gardener.cloud/keep-object: 'true'}", 1)
	mr := g.create(t, ns, manifests)
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	for _, name := range []string{"created-once", "mine"} {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if err := g.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"key":"2"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "mine"), hasData(map[string]string{"key": "1"}))
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "created-once"), hasData(map[string]string{"key": "2"}))

	// An object that moves to another ManagedResource first gets the mode Ignore.
	g.setManifests(t, ns, strings.Replace(manifests, "{name: mine, namespace: stay}", "{name: mine, namespace: stay, annotations: {resources.gardener.cloud/mode: Ignore}}", 1))
	env.Await(t, g, env.Named[*resourcesv1alpha1.ManagedResource](ns, "mr"), func(mr *resourcesv1alpha1.ManagedResource) error {
		if len(mr.Status.Resources) != 2 {
			return fmt.Errorf("status names %d resources", len(mr.Status.Resources))
		}
		return nil
	})
	if err := g.Delete(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, g, env.Named[*resourcesv1alpha1.ManagedResource](ns, "mr"))
	env.AwaitGone(t, g, env.Named[*corev1.ConfigMap](ns, "created-once"))
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "mine"), env.Exists)
	kept := env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "kept"), env.Exists)
	if _, ok := kept.Annotations[resourcesv1alpha1.OriginAnnotation]; ok {
		t.Error("the object still has the metadata of managed objects")
	}
}

func (g *garden) invalid(t *testing.T) {
	const ns = "mistakes"
	mr := g.create(t, ns, configMap(ns, "a", "1"))
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	g.setManifests(t, ns, "password: hunter2\n---\n: {{")
	failed := g.awaitApplied(t, mr, corev1beta1.ConditionFalse, `secret "manifests", key "objects.yaml": manifest 1: apiVersion is missing`)
	if message := kube.Condition(failed.Status.Conditions, resourcesv1alpha1.ResourcesApplied).Message; strings.Contains(message, "hunter2") {
		t.Errorf("the content of a secret is in %q", message)
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), hasData(map[string]string{"key": "1"}))

	g.setManifests(t, ns, configMap(ns, "a", "2")+"---\napiVersion: example.org/v1\nkind: Unheard\nmetadata: {name: x}\n"+configMap("nowhere", "b", "1"))
	g.awaitApplied(t, mr, corev1beta1.ConditionFalse, `the cluster has no kind Unheard of example.org/v1`)
	g.awaitApplied(t, mr, corev1beta1.ConditionFalse, `ConfigMap "nowhere/b": namespaces "nowhere" not found`)
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), hasData(map[string]string{"key": "2"}))
	if err := g.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}}); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap]("nowhere", "b"), hasData(map[string]string{"key": "1"}))
	g.remove(t, mr) // it would continue to retry
}

func (g *garden) compressed(t *testing.T) {
	const ns = "class"
	mr := g.create(t, ns, "")
	var compressed bytes.Buffer
	w := brotli.NewWriter(&compressed)
	if _, err := w.Write([]byte(configMap(ns, "a", "1"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "manifests"}, Data: map[string][]byte{resourcesv1alpha1.CompressedDataKey: compressed.Bytes()}}
	if err := g.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "a"), hasData(map[string]string{"key": "1"}))
	if err := g.Patch(t.Context(), mr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"class":"other"}}`))); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, g, env.Named[*corev1.ConfigMap](ns, "a"))
	env.Await(t, g, env.Named[*resourcesv1alpha1.ManagedResource](ns, "mr"), func(mr *resourcesv1alpha1.ManagedResource) error {
		if len(mr.Finalizers) > 0 || len(mr.Status.Resources) > 0 { // another cluster may have objects of these names
			return fmt.Errorf("finalizers are %v, resources %v", mr.Finalizers, mr.Status.Resources)
		}
		return nil
	})
}

func (g *garden) finalizers(t *testing.T) {
	const ns = "grace"
	mr := g.create(t, ns, strings.Replace(configMap(ns, "a", "1"), "namespace: grace",
		"namespace: grace, finalizers: [example.org/stuck], annotations: {resources.gardener.cloud/finalize-deletion-after: 5s}", 1))
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	if err := g.Delete(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	g.awaitApplied(t, mr, corev1beta1.ConditionProgressing, `the first is ConfigMap "grace/a"`)
	env.AwaitGone(t, g, env.Named[*resourcesv1alpha1.ManagedResource](ns, "mr"))
	env.AwaitGone(t, g, env.Named[*corev1.ConfigMap](ns, "a"))
}

func (g *garden) many(t *testing.T) {
	const ns = "many"
	var manifests strings.Builder
	for i := range 200 {
		manifests.WriteString(configMap(ns, fmt.Sprintf("c%d", i), "1"))
	}
	begin := time.Now()
	mr := g.create(t, ns, manifests.String())
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	t.Logf("200 objects applied after %s", time.Since(begin))
	begin = time.Now()
	if err := g.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c17"}}, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"key":"2"}}`))); err != nil {
		t.Fatal(err)
	}
	env.Await(t, g, env.Named[*corev1.ConfigMap](ns, "c17"), hasData(map[string]string{"key": "1"}))
	t.Logf("drift healed after %s", time.Since(begin))

	// A change of the Secret requeues the ManagedResource with all objects; the reconciliation of a second ManagedResource shows
	// when the queue is processed.
	before, reads := g.writes.Load(), g.reads.Load()
	if err := g.Patch(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "manifests"}},
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"touched":"yes"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := g.Patch(t.Context(), mr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"keepObjects":false}}`))); err != nil {
		t.Fatal(err)
	}
	g.awaitApplied(t, mr, corev1beta1.ConditionTrue, "")
	if writes := g.writes.Load() - before; writes > 0 {
		t.Errorf("%d objects were written for a change that changes none", writes)
	}
	if got := g.reads.Load() - reads; got > 10 {
		t.Errorf("%d reads for a change that changes no object", got)
	}
	begin = time.Now()
	if err := g.Delete(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, g, env.Named[*resourcesv1alpha1.ManagedResource](ns, "mr"))
	t.Logf("deleted after %s", time.Since(begin))
	if err := g.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "c0"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object is left: %v", err)
	}
}
