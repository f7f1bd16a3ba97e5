package lifecycle

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// What a Shoot does not ask for any more goes, in the order that it is registered with, and by default before the API server.
func TestStaleExtensions(t *testing.T) {
	last, first := corev1beta1.AfterKubeAPIServer, corev1beta1.BeforeKubeAPIServer
	s, w := newStage(t), example()
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	registration.Spec.Resources = []corev1beta1.ControllerResource{
		{Kind: "Extension", Type: "wanted"},
		{Kind: "Extension", Type: "declined", AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}, Lifecycle: &corev1beta1.ControllerResourceLifecycle{Delete: &last}},
		{Kind: "Worker", Type: "removed", Lifecycle: &corev1beta1.ControllerResourceLifecycle{Delete: &last}},
	}
	w.shoot.Spec.Extensions = []corev1beta1.Extension{{Type: "wanted"}, {Type: "declined", Disabled: new(true)}}
	errs := []error{s.garden.Create(t.Context(), registration)}
	for _, name := range []string{"wanted", "declined", "removed"} {
		errs = append(errs, s.seed.Create(t.Context(), &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}))
	}
	other := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--other", Name: "removed"}}
	if err := errors.Join(append(errs, s.seed.Create(t.Context(), other), s.observeExtensions(t.Context(), w))...); err != nil {
		t.Fatal(err)
	}
	got := map[string]corev1beta1.ControllerResourceLifecycleStrategy{}
	for _, order := range w.stale {
		got[order.typ] = order.remove
	}
	if diff := cmp.Diff(map[string]corev1beta1.ControllerResourceLifecycleStrategy{"declined": last, "removed": first}, got); diff != "" {
		t.Errorf("stale Extensions (-want +got):\n%s", diff)
	}
	for _, asleep := range []bool{true, false} { // once more finds nothing left to do
		h := &hosted{reconciler: s.reconciler, world: w, asleep: asleep}
		for _, order := range w.stale {
			if err := h.staleTask(order).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range map[string]bool{"wanted": true, "declined": false, "removed": false} {
			err := s.seed.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &extensionsv1alpha1.Extension{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == want {
				t.Errorf("Extension %q, want it to be there: %t, got %v", name, want, err)
			}
		}
	}
	if err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("another shoot's Extension: %v", err)
	}
}
