package managedresource

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// TestRemoveHeedsAnnotationsInTheCluster is about annotations that the manifest of an object does not have: the object itself was annotated, as
// its deletion would do harm, or as it is stuck.
func TestRemoveHeedsAnnotationsInTheCluster(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		annotations map[string]string
		deleted     time.Duration // how long ago, if it is being deleted
		want        bool          // whether it exists after that
	}{
		"without an annotation":              {},
		"to be kept":                         {annotations: map[string]string{resourcesv1alpha1.KeepObject: "true"}, want: true},
		"no longer to be kept":               {annotations: map[string]string{resourcesv1alpha1.KeepObject: "false"}},
		"stuck":                              {deleted: time.Hour, want: true},
		"stuck, and its time is up":          {annotations: map[string]string{resourcesv1alpha1.FinalizeDeletionAfter: "30m"}, deleted: time.Hour},
		"stuck, and it has some time to end": {annotations: map[string]string{resourcesv1alpha1.FinalizeDeletionAfter: "2h"}, deleted: time.Hour, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", Annotations: with(tc.annotations, map[string]string{
				resourcesv1alpha1.OriginAnnotation: "s/mr",
			})}}
			if tc.deleted > 0 {
				object.DeletionTimestamp, object.Finalizers = &metav1.Time{Time: now.Add(-tc.deleted)}, []string{"example.org/stuck"}
			}
			c := fake.NewClientBuilder().WithObjects(object).Build()
			target := &target{live: c, clock: clocktesting.NewFakePassiveClock(now), applied: map[objectKey]record{}}
			if _, _, err := target.remove(t.Context(), []resourcesv1alpha1.ObjectReference{reference("n")}, remover{origin: "s/mr"}); err != nil {
				t.Fatal(err)
			}
			after := &corev1.ConfigMap{}
			err := c.Get(t.Context(), client.ObjectKeyFromObject(object), after)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if exists := !apierrors.IsNotFound(err); exists != tc.want {
				t.Fatalf("exists: %t, want %t", exists, tc.want)
			}
			if _, managed := after.Annotations[resourcesv1alpha1.OriginAnnotation]; managed && tc.deleted == 0 {
				t.Error("the object is kept, and still has the metadata of managed objects")
			}
		})
	}
}
