package deletion

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// Finalizers that an extension does not remove are removed after a while. One that works has its time, and is notified to begin again.
func TestForceDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).
			WithIndex(&extensionsv1alpha1.Extension{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
			WithInterceptorFuncs(interceptor.Funcs{Watch: stagetest.WatchWithoutList}).Build()
		in := Inputs{Run: &stage.Run{SeedAPI: seed, Namespace: stagetest.Namespace, Clock: clock.RealClock{}}}
		meta := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: name, Finalizers: []string{"extensions.gardener.cloud/extension"}}
		}
		works, silent, stuck := &extensionsv1alpha1.Extension{ObjectMeta: meta("works")}, &extensionsv1alpha1.Extension{ObjectMeta: meta("silent")}, &extensionsv1alpha1.Extension{ObjectMeta: meta("stuck")}
		for _, obj := range []client.Object{works, silent, stuck} {
			if err := seed.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
		if err := seed.Delete(t.Context(), stuck); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ended := make(chan error)
		go func() { ended <- in.forceDelete(t.Context(), &extensionsv1alpha1.ExtensionList{}) }()
		synctest.Wait()
		time.Sleep(ForceTimeout / 2) //nolint:forbidigo // the time of the bubble
		for name, want := range map[string]string{"works": "confirmation.gardener.cloud/deletion", "stuck": "gardener.cloud/timestamp"} {
			obj := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: name}}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}
			if obj.DeletionTimestamp == nil || obj.Annotations[want] == "" {
				t.Errorf("%q has the annotations %v", name, obj.Annotations)
			}
			if name == "works" {
				obj.Finalizers = nil
				if err := seed.Update(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < ForceTimeout || took > ForceTimeout+time.Second {
			t.Errorf("it took %s", took)
		}
		left := &extensionsv1alpha1.ExtensionList{}
		if err := seed.List(t.Context(), left); err != nil || len(left.Items) > 0 {
			t.Errorf("%d are left: %v", len(left.Items), err)
		}
	})
}

func TestRemoveFinalizers(t *testing.T) {
	clusters := stagetest.New(t)
	in := Inputs{Run: clusters.Run()}
	for _, namespace := range []string{stagetest.Namespace, "other"} {
		kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kept", Finalizers: []string{"example.com/x"}}}
		if err := clusters.Seed.Create(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		if err := clusters.Seed.Delete(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(in.removeFinalizers(t.Context()), in.deleteMachines(t.Context())); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "kept"}, secret); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret still exists, with finalizers %v: %v", secret.Finalizers, err)
	}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: "other", Name: "kept"}, secret); err != nil || !slices.Contains(secret.Finalizers, "example.com/x") {
		t.Errorf("the Secret in another namespace has finalizers %v: %v", secret.Finalizers, err)
	}
}
