package lifecycle

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/flow"
)

func TestForced(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		deleted    bool
		want       bool
	}{
		"no":              {deleted: true},
		"declined":        {annotation: "false", deleted: true},
		"no answer":       {annotation: "please", deleted: true},
		"yes":             {annotation: "true", deleted: true, want: true},
		"it shall not go": {annotation: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": tc.annotation}
			if tc.deleted {
				shoot.DeletionTimestamp = new(metav1.NewTime(noon))
			}
			if got := forced(shoot); got != tc.want {
				t.Errorf("forced() is %t", got)
			}
		})
	}
}

// A deletion that waits for something ends when it is by force from now on, and is heard of again.
func TestForceInterruptsDeletion(t *testing.T) {
	r := &reconciler{Values: Values{Clock: clock.RealClock{}}}
	shoot := &corev1beta1.Shoot{}
	shoot.Namespace, shoot.Name, shoot.DeletionTimestamp, shoot.Finalizers = "garden-dev", "crazy-botany", new(metav1.NewTime(noon)), []string{"gardener"}
	before := shoot.DeepCopy()
	shoot.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": "true"}
	f, err := compose("x", []flow.Task{task("waits", "Waiting", func(ctx context.Context) error {
		if !r.changed().Update(event.TypedUpdateEvent[*corev1beta1.Shoot]{ObjectOld: before, ObjectNew: shoot}) {
			t.Error("the change is not heard of")
		}
		<-ctx.Done()
		return ctx.Err()
	})})
	if err != nil {
		t.Fatal(err)
	}
	status := &reporter{client: garden(t, before), clock: r.Clock, shoot: before, operation: corev1beta1.LastOperationTypeDelete}
	if err := r.run(t.Context(), status, f, example()); !errors.Is(err, errForced) {
		t.Errorf("run() ends with %v", err)
	}
	if _, ok := r.running.Load(client.ObjectKeyFromObject(shoot)); ok {
		t.Error("the flow that has ended is still known")
	}
}

// An extension that does not let go loses its say after a while. One that works has its time, and hears that it has to begin again.
func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := fake.NewClientBuilder().WithScheme(newStage(t).seed.Scheme()).
			WithIndex(&extensionsv1alpha1.Extension{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
			WithInterceptorFuncs(interceptor.Funcs{Watch: watchWithoutList}).Build()
		h := &hosted{reconciler: &reconciler{Values: Values{SeedClient: seed, Clock: clock.RealClock{}}}, world: example()}
		meta := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: h.namespace, Name: name, Finalizers: []string{"extensions.gardener.cloud/extension"}}
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
		go func() { ended <- h.abandon(t.Context(), &extensionsv1alpha1.ExtensionList{}) }()
		synctest.Wait()
		time.Sleep(forcedPatience / 2) //nolint:forbidigo // the time of the bubble
		for name, want := range map[string]string{"works": "confirmation.gardener.cloud/deletion", "stuck": "gardener.cloud/timestamp"} {
			obj := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
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
		if took := time.Since(begin); took < forcedPatience || took > forcedPatience+time.Second {
			t.Errorf("it took %s", took)
		}
		left := &extensionsv1alpha1.ExtensionList{}
		if err := seed.List(t.Context(), left); err != nil || len(left.Items) > 0 {
			t.Errorf("%d are left: %v", len(left.Items), err)
		}
	})
}

func TestDropFinalizers(t *testing.T) {
	s := newStage(t)
	h := &hosted{reconciler: s.reconciler, world: example()}
	for _, namespace := range []string{h.namespace, "other"} {
		kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kept", Finalizers: []string{"example.com/x"}}}
		if err := s.seed.Create(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		if err := s.seed.Delete(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(h.dropFinalizers(t.Context()), h.dropMachines(t.Context())); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := s.seed.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "kept"}, secret); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret is still there, with finalizers %v: %v", secret.Finalizers, err)
	}
	if err := s.seed.Get(t.Context(), client.ObjectKey{Namespace: "other", Name: "kept"}, secret); err != nil || !slices.Contains(secret.Finalizers, "example.com/x") {
		t.Errorf("somebody else's Secret has finalizers %v: %v", secret.Finalizers, err)
	}
}
