// Package backupentry reconciles BackupEntries: the backups of one shoot in the bucket of its seed.
//
// It reads BackupEntries of the seed in the garden and their BackupBuckets, adds a finalizer to the BackupEntry and writes its status. In the
// seed it writes a copy of the credentials for the bucket and the BackupEntry of extensions.gardener.cloud. The backups of a deleted
// BackupEntry are kept for the configured time. When the control plane moves to another seed, the gardenlet of the former one releases the
// BackupEntry, and that of the other one restores it. Source: concepts.txt, gardenlet, BackupEntry Controller.
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
	"gardener.cloud/gardener/internal/gardenlet/backup"
	"gardener.cloud/gardener/internal/kube"
)

// syncPeriod is when the credentials of the bucket are read again, although new ones are noticed when the BackupBucket becomes ready with them: it may
// be one of another seed, which the gardenlet may not watch. There are as many BackupEntries as Shoots, so it is long.
const syncPeriod = time.Hour

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the BackupEntries.
	Garden cluster.Cluster
	// SeedAPI is the API server of the seed.
	SeedAPI client.WithWatch
	// Config says how many BackupEntries are reconciled at once, and how long backups outlive their shoots.
	Config gardenletconfigv1alpha1.BackupEntryControllerConfiguration
	// Clock is for the grace period and the status.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	k := &kind{
		gardenCache: v.Garden.GetClient(), gardenAPI: v.Garden.GetAPIReader(), clock: v.Clock,
		gracePeriod: time.Duration(*v.Config.DeletionGracePeriodHours) * time.Hour, purposes: v.Config.DeletionGracePeriodShootPurposes,
	}
	return builder.ControllerManagedBy(mgr).Named("backupentry").
		WithOptions(controller.Options{MaxConcurrentReconciles: *v.Config.ConcurrentSyncs, RateLimiter: kube.RateLimiter(backup.LastRetry)}).
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.BackupEntry{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.BackupEntry]{},
			backup.Changed[*corev1beta1.BackupEntry](constants.BackupEntryForceDeletion))).
		// BackupEntries wait until their BackupBucket is ready.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.BackupBucket{},
			handler.TypedEnqueueRequestsFromMapFunc(k.entriesIn), becameReady())).
		Watches(&extensionsv1alpha1.BackupEntry{}, handler.EnqueueRequestsFromMapFunc(k.entryOf)).
		Complete(&backup.Reconciler[*corev1beta1.BackupEntry, *extensionsv1alpha1.BackupEntry]{
			Kind: k, KindName: "BackupEntry", SeedName: v.SeedName,
			GardenCache: k.gardenCache, GardenAPI: k.gardenAPI, SeedCache: mgr.GetClient(), SeedAPI: v.SeedAPI, SyncPeriod: syncPeriod, Clock: v.Clock,
		})
}

// becameReady passes the updates by which a BackupBucket becomes ready.
func becameReady() predicate.TypedFuncs[*corev1beta1.BackupBucket] {
	return predicate.TypedFuncs[*corev1beta1.BackupBucket]{
		CreateFunc: func(event.TypedCreateEvent[*corev1beta1.BackupBucket]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.BackupBucket]) bool {
			return !bucketReady(e.ObjectOld) && bucketReady(e.ObjectNew)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.BackupBucket]) bool { return false },
	}
}

// entriesIn maps a BackupBucket to the BackupEntries in it.
func (k *kind) entriesIn(ctx context.Context, bucket *corev1beta1.BackupBucket) []reconcile.Request {
	return k.entries(ctx, func(e *corev1beta1.BackupEntry) bool { return e.Spec.BucketName == bucket.Name })
}

// entryOf maps a BackupEntry in the seed to that in the garden, which has the same name and a namespace.
func (k *kind) entryOf(ctx context.Context, inSeed client.Object) []reconcile.Request {
	return k.entries(ctx, func(e *corev1beta1.BackupEntry) bool { return e.Name == inSeed.GetName() })
}

func (k *kind) entries(ctx context.Context, selected func(*corev1beta1.BackupEntry) bool) []reconcile.Request {
	list := &corev1beta1.BackupEntryList{}
	if err := k.gardenCache.List(ctx, list); err != nil {
		return nil // the cache only fails when the process stops
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if selected(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
