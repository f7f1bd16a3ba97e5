package gardenlet

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/test/behind"
	"gardener.cloud/gardener/test/builder"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	unapproved := builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Annotations = map[string]string{seedmanagementv1alpha1.AnnotationCreatedByGardenlet: "true"}
	})
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(unapproved).WithStatusSubresource(unapproved).Build()
	behind.Case[*seedmanagementv1alpha1.Gardenlet]{
		API: api, Object: unapproved,
		Status: func(g *seedmanagementv1alpha1.Gardenlet) any { return g.Status.Conditions[0].Status },
		Other:  func(g *seedmanagementv1alpha1.Gardenlet) { g.Status.Conditions[0].Status = corev1beta1.ConditionTrue },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, virtualCache: cache, virtualAPI: api}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(unapproved)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}
