// Package lifecycle creates, changes, hibernates and deletes the control planes of the Shoots of a seed.
//
// In the garden it reads Shoots of the seed and what they refer to; it writes their status except for conditions, their finalizer, and
// what clients need of a control plane: an InternalSecret with the CA of client certificates, a ConfigMap and a Secret with the CA bundle
// of the kube-apiserver, the SSH key of nodes, the BackupEntry. In the seed it writes the namespace of the control plane with everything in
// it, and the Cluster resource. Source: concepts.txt, gardenlet, Shoot Controller, "Main" Reconciler; docs/flows.md.
package lifecycle

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
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
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	name = "shoot"
	// passTimeout is the end of one pass: the end of its flow, and some time to report it.
	passTimeout = flowTimeout + observed.MaxNodeAgentDelay + time.Minute
	// Failed passes are repeated after firstRetry, then after twice that, and so on up to lastRetry: infrastructures are broken for
	// minutes.
	firstRetry, lastRetry = 2 * time.Second, 2 * time.Minute
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the Shoots, and its cache.
	Garden cluster.Cluster
	// GardenAPI is the garden without a cache.
	GardenAPI client.WithWatch
	// SeedAPI is the seed without a cache: a flow reads what it has just written.
	SeedAPI client.WithWatch
	// Connect returns a client for the kube-apiserver of a shoot.
	Connect func(config *rest.Config) (client.WithWatch, error)
	// Discover returns which kinds of objects the kube-apiserver of a shoot serves, as far as it responds.
	Discover func(config *rest.Config) ([]*metav1.APIResourceList, error)
	// Gateways are those of handlers of ExposureClasses, by the names of the handlers.
	Gateways map[string]client.ObjectKey
	// TerminateTLS is whether gateways end connections of kube-apiservers, if the owners of the Shoots do not disable it.
	TerminateTLS bool
	// Gardener is the running gardenlet.
	Gardener corev1beta1.Gardener
	// Images are those of the components.
	Images imagevector.Vector
	// Config says when shoots are reconciled.
	Config gardenletconfigv1alpha1.ShootControllerConfiguration
	// ETCD configures backups of etcd. It may be nil.
	ETCD *gardenletconfigv1alpha1.ETCDConfig
	// SavesStates returns whether ShootStates are saved on this seed.
	SavesStates func(context.Context) (bool, error)
	// Metrics and FlowMetrics may be nil.
	Metrics     *Metrics
	FlowMetrics *flow.Metrics
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	garden := v.Garden.GetCache()
	r := &reconciler{Values: v, gardenCache: v.Garden.GetClient(), recorder: v.Garden.GetEventRecorder(name)}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: *v.Config.ConcurrentSyncs, ReconciliationTimeout: passTimeout,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		WatchesRawSource(source.Kind(garden, &corev1beta1.Shoot{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Shoot]{}, r.changed())).
		// Shoots wait for a seed that is not ready, or whose shoots are not to be reconciled.
		WatchesRawSource(source.Kind(garden, &corev1beta1.Seed{},
			handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ *corev1beta1.Seed) []reconcile.Request {
				return r.shoots(ctx)
			}), predicate.TypedFuncs[*corev1beta1.Seed]{
				CreateFunc: func(event.TypedCreateEvent[*corev1beta1.Seed]) bool { return false }, // Shoots are queued by their own events
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Seed]) bool {
					return resumes(e.ObjectOld, e.ObjectNew, v.Gardener.Version)
				},
				DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Seed]) bool { return false },
			})).
		Complete(r)
}

// changed ignores changes of the status that this controller writes, and of annotations that do not count as a new generation. When a
// deletion becomes one by force, its flow is interrupted. A shoot that moves waits until its other seed is ready, or until its former one has released it.
func (r *reconciler) changed() predicate.TypedFuncs[*corev1beta1.Shoot] {
	return predicate.TypedFuncs[*corev1beta1.Shoot]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Shoot]) bool {
			if forced(e.ObjectNew) && !forced(e.ObjectOld) {
				r.interrupt(e.ObjectNew)
			}
			return e.ObjectNew.Generation != e.ObjectOld.Generation || relevant(e.ObjectNew) != relevant(e.ObjectOld) ||
				e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Shoot]) bool { return false },
	}
}

// resumes is whether a seed has become ready for changes of its shoots.
func resumes(before, after *corev1beta1.Seed, version string) bool {
	return seedUnready(before, version) != "" && seedUnready(after, version) == ""
}

// shoots are those of the seed.
func (r *reconciler) shoots(ctx context.Context) []reconcile.Request {
	shoots := &corev1beta1.ShootList{}
	if err := r.gardenCache.List(ctx, shoots); err != nil {
		return nil // they are requeued after a while
	}
	var requests []reconcile.Request
	for i := range shoots.Items {
		if shoot := &shoots.Items[i]; responsible(shoot) == r.SeedName {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
		}
	}
	return requests
}
