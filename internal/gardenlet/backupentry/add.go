// Package backupentry has an extension keep the place of the backups of one control plane in the bucket of the seed.
//
// It reads BackupEntries of the seed, and the BackupBucket that each is in, in the garden; it puts a finalizer on the entry and writes its
// status. In the seed it writes the Secret with the credentials of the bucket and the BackupEntry of the extension. An entry that is
// deleted keeps its backups for the configured time. Source: concepts.txt, gardenlet, BackupEntry Controller.
package backupentry

import (
	"context"
	"time"

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

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is where the BackupEntries are.
	Garden cluster.Cluster
	// Config says how many are worked on at once, and how long backups outlive their shoots.
	Config gardenletconfigv1alpha1.BackupEntryControllerConfiguration
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenClient: v.Garden.GetClient(), seedClient: mgr.GetClient()}
	r.gracePeriod = time.Duration(*v.Config.DeletionGracePeriodHours) * time.Hour
	return builder.ControllerManagedBy(mgr).Named("backupentry").
		WithOptions(controller.Options{MaxConcurrentReconciles: *v.Config.ConcurrentSyncs}).
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.BackupEntry{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.BackupEntry]{},
			predicate.TypedFuncs[*corev1beta1.BackupEntry]{
				// The status is our own.
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.BackupEntry]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectNew.Annotations[constants.GardenerOperation] != "" ||
						e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil ||
						e.ObjectOld.Annotations[constants.BackupEntryForceDeletion] != e.ObjectNew.Annotations[constants.BackupEntryForceDeletion]
				},
			})).
		// Entries wait for their bucket.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.BackupBucket{},
			handler.TypedEnqueueRequestsFromMapFunc(r.entriesIn), becameReady())).
		Watches(&extensionsv1alpha1.BackupEntry{}, handler.EnqueueRequestsFromMapFunc(r.entryOf)).
		Complete(r)
}

// becameReady leaves out what entries do not wait for.
func becameReady() predicate.TypedFuncs[*corev1beta1.BackupBucket] {
	return predicate.TypedFuncs[*corev1beta1.BackupBucket]{
		CreateFunc: func(event.TypedCreateEvent[*corev1beta1.BackupBucket]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.BackupBucket]) bool {
			return usable(e.ObjectOld) != nil && usable(e.ObjectNew) == nil
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.BackupBucket]) bool { return false },
	}
}

// entriesIn are the entries in a bucket.
func (r *reconciler) entriesIn(ctx context.Context, bucket *corev1beta1.BackupBucket) []reconcile.Request {
	return r.entries(ctx, func(e *corev1beta1.BackupEntry) bool { return e.Spec.BucketName == bucket.Name })
}

// entryOf is the entry that ordered one of the seed. Only the garden knows its namespace.
func (r *reconciler) entryOf(ctx context.Context, inSeed client.Object) []reconcile.Request {
	return r.entries(ctx, func(e *corev1beta1.BackupEntry) bool { return e.Name == inSeed.GetName() })
}

func (r *reconciler) entries(ctx context.Context, wanted func(*corev1beta1.BackupEntry) bool) []reconcile.Request {
	list := &corev1beta1.BackupEntryList{}
	if err := r.gardenClient.List(ctx, list); err != nil {
		return nil // it is a cache, which fails only when everything ends
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
