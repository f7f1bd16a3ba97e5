// Package backupbucket has an extension keep the bucket for the backups of a seed.
//
// It reads BackupBuckets of the seed in the garden, and the Secrets with their credentials, and puts finalizers on both. In the seed it
// writes a copy of the Secret and the BackupBucket of the extension; back in the garden, the status and the Secret that the extension
// made, if it did. Source: concepts.txt, gardenlet, BackupBucket Controller.
package backupbucket

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is where the BackupBuckets are.
	Garden cluster.Cluster
	// ConcurrentSyncs is how many are worked on at once.
	ConcurrentSyncs int
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	// The one in the seed has the name of that in the garden.
	sameName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: obj.GetName()}}}
	})
	return builder.ControllerManagedBy(mgr).Named("backupbucket").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.BackupBucket{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.BackupBucket]{},
			predicate.TypedFuncs[*corev1beta1.BackupBucket]{
				// The status is our own.
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.BackupBucket]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectNew.Annotations[constants.GardenerOperation] != "" ||
						e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
				},
			})).
		Watches(&extensionsv1alpha1.BackupBucket{}, sameName).
		Complete(&reconciler{Values: v, gardenClient: v.Garden.GetClient(), seedClient: mgr.GetClient()})
}
