package managedseedset

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	set := &seedmanagementv1alpha1.ManagedSeedSet{Spec: seedmanagementv1alpha1.ManagedSeedSetSpec{Replicas: new(int32(0))}}
	set.Namespace, set.Name, set.Finalizers = "garden", "s", []string{constants.FinalizerGardenerName}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set).WithStatusSubresource(set).Build()
	behind.Case[*seedmanagementv1alpha1.ManagedSeedSet]{
		API: api, Object: set,
		Status: func(s *seedmanagementv1alpha1.ManagedSeedSet) any { return s.Status.Replicas },
		Other:  func(s *seedmanagementv1alpha1.ManagedSeedSet) { s.Status.Replicas = 1 },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{
				Values:      Values{SyncPeriod: time.Hour, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))},
				gardenCache: cache, gardenAPI: api, recorder: events.NewFakeRecorder(1),
			}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}
