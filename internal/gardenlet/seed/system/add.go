// Package system deploys what every seed has besides control planes: CRDs, PriorityClasses, the CA of the seed, and the components in the
// namespace garden.
//
// It reads and writes these objects in the seed, the Extensions of the seed and copies of what the Seed refers to there, the BackupBucket of the
// seed in the garden and the finalizer of its former credentials, and the status and the finalizer of the Seed. The finalizer of a deleted
// Seed is removed when the seed has no shoot, no extension and no backup. Source: concepts.txt, gardenlet, Seed Controller, "Main Reconciler".
package system

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
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
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	"gardener.cloud/gardener/pkg/flow"
)

// lastRetry is the longest delay after an error, which is how often an unchanged Seed is reconciled by default.
const lastRetry = time.Minute

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the Seed. Its cache has the Seed, and the ControllerInstallations and BackupBuckets of the seed.
	Garden cluster.Cluster
	// GardenAPI is the API server of the garden.
	GardenAPI client.WithWatch
	// SeedAPI is the API server of the seed.
	SeedAPI client.WithWatch
	// SeedVersion reads the Kubernetes version of the seed.
	SeedVersion discovery.ServerVersionInterface
	// KubeconfigSecret is the Secret in the seed with the gardenlet's kubeconfig for the garden. Nil if the gardenlet does not renew it.
	KubeconfigSecret *corev1.SecretReference
	// CertificateExpiry is the end of the client certificate in that kubeconfig. It may be nil.
	CertificateExpiry *time.Time
	// Gardener is the running gardenlet, for the status.
	Gardener corev1beta1.Gardener
	// Capacity is what the seed has of each resource, such as shoots. Reserved is the part that the scheduler does not use.
	Capacity, Reserved corev1.ResourceList
	// Images are those of the components.
	Images systemcomponents.Images
	// ETCD configures etcd-druid. It may be nil.
	ETCD *gardenletconfigv1alpha1.ETCDConfig
	// SNI configures the gateway. It may be nil.
	SNI *gardenletconfigv1alpha1.SNI
	// Handlers are those of ExposureClasses. Each has a gateway of its own. They are defaulted.
	Handlers []gardenletconfigv1alpha1.ExposureClassHandler
	// TerminateTLS is whether gateways end connections of kube-apiservers.
	TerminateTLS bool
	// NodeToleration is how long pods in the seed tolerate failed nodes if they do not say it. It may be nil.
	NodeToleration *gardenletconfigv1alpha1.NodeToleration
	// SyncPeriod is how often an unchanged Seed is reconciled.
	SyncPeriod time.Duration
	// Metrics counts and times the tasks. It may be nil.
	Metrics *flow.Metrics
	// Clock is for the status.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	cache := v.Garden.GetCache()
	return builder.ControllerManagedBy(mgr).Named("seed").
		WithOptions(controller.Options{RateLimiter: kube.RateLimiter(lastRetry)}).
		WatchesRawSource(source.Kind(cache, &corev1beta1.Seed{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Seed]{}, seedChanged())).
		// Registrations say which Extensions the seed has by default.
		WatchesRawSource(source.Kind(cache, &corev1beta1.ControllerRegistration{}, toSeed[*corev1beta1.ControllerRegistration](v.SeedName),
			predicate.TypedGenerationChangedPredicate[*corev1beta1.ControllerRegistration]{})).
		// A deleted Seed waits until none of these exists. The deleted one may have been the last.
		WatchesRawSource(source.Kind(cache, &corev1beta1.ControllerInstallation{}, toSeed[*corev1beta1.ControllerInstallation](v.SeedName),
			deleted[*corev1beta1.ControllerInstallation]())).
		WatchesRawSource(source.Kind(cache, &corev1beta1.BackupBucket{}, toSeed[*corev1beta1.BackupBucket](v.SeedName),
			deleted[*corev1beta1.BackupBucket]())).
		Complete(&reconciler{Values: v, gardenCache: v.Garden.GetClient()})
}

// seedChanged filters out changes of the status, most of which this controller has made.
func seedChanged() predicate.TypedFuncs[*corev1beta1.Seed] {
	return predicate.TypedFuncs[*corev1beta1.Seed]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Seed]) bool {
			return e.ObjectNew.Generation != e.ObjectOld.Generation || e.ObjectNew.Annotations[constants.GardenerOperation] != "" ||
				e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Seed]) bool { return false },
	}
}

// toSeed maps every object to the Seed of the gardenlet.
func toSeed[T client.Object](name string) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}

// deleted passes deletions only.
func deleted[T client.Object]() predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{
		CreateFunc: func(event.TypedCreateEvent[T]) bool { return false },
		UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false },
	}
}
