// Package system installs what every seed has besides control planes: kinds of resources, priority classes, authorities.
//
// It reads and writes these objects in the seed, the BackupBucket of the seed in the garden, and the status and the finalizer of the
// Seed. A Seed that is deleted is let go when no shoot, no extension and no backup is left on it. Source: concepts.txt, gardenlet, Seed
// Controller, "Main Reconciler".
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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/pkg/flow"
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is where the Seed is.
	Garden cluster.Cluster
	// SeedClient reaches the seed.
	SeedClient client.WithWatch
	// SeedVersion tells the version of the seed.
	SeedVersion discovery.ServerVersionInterface
	// KubeconfigSecret is where the gardenlet keeps its access to the garden. It may be nil.
	KubeconfigSecret *corev1.SecretReference
	// CertificateExpiry is when that access ends. It may be nil.
	CertificateExpiry *time.Time
	// Gardener is the running gardenlet.
	Gardener corev1beta1.Gardener
	// Capacity and Reserved are how much there is in the seed, and how much of it the scheduler leaves free.
	Capacity, Reserved corev1.ResourceList
	// Images are those of the components.
	Images Images
	// ETCD configures etcd-druid. It may be nil.
	ETCD *gardenletconfigv1alpha1.ETCDConfig
	// SyncPeriod is how often an unchanged Seed is looked at.
	SyncPeriod time.Duration
	// Metrics counts and times the tasks. It may be nil.
	Metrics *flow.Metrics
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Images are references of images.
type Images struct {
	// Gardener is the image with all our processes.
	Gardener string
	// Etcd is the image of etcd.
	Etcd string
	// HAProxy is the image of what passes connections through to control planes.
	HAProxy string
	// Autoscaler are those of the Vertical Pod Autoscaler.
	Autoscaler verticalpodautoscaler.Images
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	cache := v.Garden.GetCache()
	return builder.ControllerManagedBy(mgr).Named("seed").
		WatchesRawSource(source.Kind(cache, &corev1beta1.Seed{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Seed]{}, seedChanged())).
		// What keeps a Seed from going: when one of these goes, it may be the last one.
		WatchesRawSource(source.Kind(cache, &corev1beta1.ControllerInstallation{}, toSeed[*corev1beta1.ControllerInstallation](v.SeedName),
			deleted[*corev1beta1.ControllerInstallation]())).
		WatchesRawSource(source.Kind(cache, &corev1beta1.BackupBucket{}, toSeed[*corev1beta1.BackupBucket](v.SeedName),
			deleted[*corev1beta1.BackupBucket]())).
		Complete(&reconciler{Values: v, gardenClient: v.Garden.GetClient(), live: v.Garden.GetAPIReader()})
}

// seedChanged leaves out changes of the status, most of which are our own.
func seedChanged() predicate.TypedFuncs[*corev1beta1.Seed] {
	return predicate.TypedFuncs[*corev1beta1.Seed]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Seed]) bool {
			return e.ObjectNew.Generation != e.ObjectOld.Generation || e.ObjectNew.Annotations[constants.GardenerOperation] != "" ||
				e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Seed]) bool { return false },
	}
}

// toSeed asks for a look at the one Seed, whatever the object is.
func toSeed[T client.Object](name string) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}

// deleted leaves out everything but the end of an object.
func deleted[T client.Object]() predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{
		CreateFunc: func(event.TypedCreateEvent[T]) bool { return false },
		UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false },
	}
}
