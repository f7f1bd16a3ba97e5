package requiredruntime

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	e := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "e"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).WithStatusSubresource(e).Build()
	behind.Case[*operatorv1alpha1.Extension]{
		API: api, Object: e,
		Status: func(e *operatorv1alpha1.Extension) any { return e.Status.Conditions[0].Status },
		Other:  func(e *operatorv1alpha1.Extension) { e.Status.Conditions[0].Status = corev1beta1.ConditionTrue },
		Pass: func(cache client.WithWatch) {
			clk, read := clocktesting.NewFakePassiveClock(time.Unix(0, 0)), &operatorv1alpha1.Extension{}
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(e), read); err != nil {
				t.Fatal(err)
			}
			r := &reconciler{runtimeCache: cache, runtimeAPI: api, clock: clk}
			if _, err := r.Reconcile(t.Context(), read); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}
