package upgrade

import (
	"errors"
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
	if err := seedmanagementv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	invalid := builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config = &runtime.RawExtension{Raw: []byte(`[]`)} })
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(invalid).WithStatusSubresource(invalid).Build()
	behind.Case[*seedmanagementv1alpha1.Gardenlet]{
		API: api, Object: invalid,
		Status: func(g *seedmanagementv1alpha1.Gardenlet) any { return g.Status.Conditions[0].Status },
		Other:  func(g *seedmanagementv1alpha1.Gardenlet) { g.Status.Conditions[0].Status = corev1beta1.ConditionTrue },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{Values: Values{GardenAPI: api, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, gardenCache: cache}
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(invalid)}
			if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, reconcile.TerminalError(nil)) {
				t.Fatal(err)
			}
		},
	}.Run(t)
}
