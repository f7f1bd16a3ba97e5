package installation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "i"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ci).WithStatusSubresource(ci).Build()
	behind.Case[*corev1beta1.ControllerInstallation]{
		API: api, Object: ci,
		Status: func(ci *corev1beta1.ControllerInstallation) any { return ci.Status.Conditions[0].Status },
		Other: func(ci *corev1beta1.ControllerInstallation) {
			ci.Status.Conditions[0].Status = corev1beta1.ConditionFalse
		},
		Pass: func(cache client.WithWatch) {
			r := &reconciler{Values: Values{GardenAPI: api, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, gardenCache: cache}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ci)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}
