package required

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "i"}}
	ci.Spec.RegistrationRef.Name = "r"
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(registration, ci).WithStatusSubresource(ci).Build()
	behind.Case[*corev1beta1.ControllerInstallation]{
		API: api, Object: ci,
		Changed: predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return changed(e.ObjectOld.(*corev1beta1.ControllerInstallation), e.ObjectNew.(*corev1beta1.ControllerInstallation)) //nolint:forcetypeassert // of the test
		}},
		Status: func(ci *corev1beta1.ControllerInstallation) any { return ci.Status.Conditions[0].Status },
		Other: func(ci *corev1beta1.ControllerInstallation) {
			ci.Status.Conditions[0].Status = corev1beta1.ConditionTrue
		},
		Pass: func(cache client.WithWatch) {
			r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, gardenCache: cache}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ci)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}
