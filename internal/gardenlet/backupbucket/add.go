// Package backupbucket reconciles BackupBuckets: the bucket with the backups of a seed.
//
// It reads BackupBuckets of the seed in the garden, and the Secrets or WorkloadIdentities with their credentials, and adds finalizers to both. In the seed it
// writes a Secret with the credentials and the BackupBucket of extensions.gardener.cloud; in the garden, the status, and a copy of the credentials
// if the extension has generated some. Source: concepts.txt, gardenlet, BackupBucket Controller.
package backupbucket

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/gardenlet/backup"
	"gardener.cloud/gardener/internal/kube"
)

// syncPeriod is how long new credentials for a bucket take to be noticed, at most a fifth more. A pass without new ones costs a handful of requests.
const syncPeriod = 5 * time.Minute

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the BackupBuckets.
	Garden cluster.Cluster
	// SeedAPI is the API server of the seed.
	SeedAPI client.WithWatch
	// ConcurrentSyncs is how many BackupBuckets are reconciled at once.
	ConcurrentSyncs int
	// Clock is for the status.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	// The BackupBucket in the seed has the name of that in the garden.
	sameName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: obj.GetName()}}}
	})
	k := &kind{gardenCache: v.Garden.GetClient(), gardenAPI: v.Garden.GetAPIReader(), seedCache: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("backupbucket").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs, RateLimiter: kube.RateLimiter(backup.LastRetry)}).
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.BackupBucket{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.BackupBucket]{},
			backup.Changed[*corev1beta1.BackupBucket]())).
		Watches(&extensionsv1alpha1.BackupBucket{}, sameName).
		Complete(&backup.Reconciler[*corev1beta1.BackupBucket, *extensionsv1alpha1.BackupBucket]{
			Kind: k, KindName: "BackupBucket", SeedName: v.SeedName,
			GardenCache: k.gardenCache, GardenAPI: k.gardenAPI, SeedCache: k.seedCache, SeedAPI: v.SeedAPI, SyncPeriod: syncPeriod,
			RequestPeriod: extensionobject.BucketPeriod, Clock: v.Clock,
		})
}
