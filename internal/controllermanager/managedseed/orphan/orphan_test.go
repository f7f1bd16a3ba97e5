package orphan

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

func TestReconcile(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s"}}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	for name, tc := range map[string]struct {
		deleted bool
		others  []client.Object
		gone    bool
	}{
		"its Shoot is gone, and there is no Seed":  {deleted: true, gone: true},
		"its Shoot is gone, and its Seed is there": {deleted: true, others: []client.Object{seed}},
		"its Shoot is there":                       {deleted: true, others: []client.Object{shoot}},
		"it is not in deletion":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			object := &seedmanagementv1alpha1.ManagedSeed{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "m", Finalizers: []string{constants.FinalizerGardenerName}},
				Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "s"}},
			}
			if tc.deleted {
				object.DeletionTimestamp = new(metav1.Now())
			}
			// The cache has nothing but the ManagedSeed yet.
			cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).Build()
			recorder := events.NewFakeRecorder(1)
			r := &reconciler{gardenCache: cache, gardenAPI: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.others...).Build(), recorder: recorder}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}); err != nil {
				t.Fatal(err)
			}
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(object), object); apierrors.IsNotFound(err) != tc.gone || len(recorder.Events) > 0 != tc.gone {
				t.Errorf("it is gone: %v, with %d events, want %t", err, len(recorder.Events), tc.gone)
			}
		})
	}
}
