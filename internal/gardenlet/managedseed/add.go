// Package managedseed deploys gardenlets into the Shoots of this seed that are seeds themselves.
//
// It reads ManagedSeeds, their Shoots and Seeds in the garden, the Deployment of this gardenlet, and the credentials of control planes in the seed. In
// the garden it writes bootstrap tokens or ServiceAccounts, finalizers and status of ManagedSeeds, events, and deletes their Seeds. In the shoot it writes
// the namespace "garden" and what the chart of the gardenlet has, and watches its Deployment and pods. A changed gardenlet that does not work is rolled
// back: the record of that (package trial) is in the shoot. Source: concepts.txt, gardenlet, "ManagedSeed Controller".
package managedseed

import (
	"context"
	"errors"
	"math/rand/v2"
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
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

const name = "managedseed"

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed with the control planes of the Shoots.
	SeedName string
	// Garden is the cluster with the ManagedSeeds and Shoots.
	Garden cluster.Cluster
	// GardenAPI is the API server of the garden, for what is not read from the cache: Seeds, Secrets, and the status of ManagedSeeds.
	GardenAPI client.WithWatch
	// SeedAPI is the API server of the seed.
	SeedAPI client.Reader
	// Connect returns a client for the kube-apiserver of a shoot.
	Connect func(config *rest.Config) (client.WithWatch, error)
	// Parent is the configuration of this gardenlet, which others inherit.
	Parent *gardenletconfigv1alpha1.GardenletConfiguration
	// Config are the settings of the controller.
	Config gardenletconfigv1alpha1.ManagedSeedControllerConfiguration
	// Clock is for conditions and credentials.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	parent, err := parentConfiguration(v.Parent)
	if err != nil {
		return err
	}
	archive, err := charts.Archive(charts.Gardenlet)
	if err != nil {
		return err
	}
	r := &reconciler{Values: v, gardenCache: v.Garden.GetClient(), recorder: v.Garden.GetEventRecorder(name), parent: parent, archive: archive, watches: newGardenletWatches()}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: *v.Config.ConcurrentSyncs,
			// A gardenlet that is tried is checked often, whether its objects can be applied again or not: see trial.Checks.
			RateLimiter: kube.RateLimiter(trial.SteadyTime),
		}).
		// Operations raise the generation. The status is the controller's own.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &seedmanagementv1alpha1.ManagedSeed{}, r.delayed(),
			predicate.TypedFuncs[*seedmanagementv1alpha1.ManagedSeed]{
				UpdateFunc: func(e event.TypedUpdateEvent[*seedmanagementv1alpha1.ManagedSeed]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
				},
				DeleteFunc: func(event.TypedDeleteEvent[*seedmanagementv1alpha1.ManagedSeed]) bool { return false },
			})).
		// A ManagedSeed waits until its Shoot is reconciled.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Shoot{}, handler.TypedEnqueueRequestsFromMapFunc(r.managedSeedsOf),
			predicate.TypedFuncs[*corev1beta1.Shoot]{
				CreateFunc: func(event.TypedCreateEvent[*corev1beta1.Shoot]) bool { return false },
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Shoot]) bool {
					return !shootReconciled(e.ObjectOld) && shootReconciled(e.ObjectNew)
				},
				DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Shoot]) bool { return false },
			})).
		WatchesRawSource(r.watchSeeds(mgr)).
		// The Deployment and the pods of a gardenlet say whether it works.
		WatchesRawSource(kube.Background(mgr, r.watches.run)).
		Complete(r)
}

// delayed enqueues ManagedSeeds, those that are as they should be later: after a start of the process, not all at once.
func (r *reconciler) delayed() handler.TypedEventHandler[*seedmanagementv1alpha1.ManagedSeed, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(q queue, object *seedmanagementv1alpha1.ManagedSeed, spread bool) {
		delay := time.Duration(0)
		if period := r.Config.SyncJitterPeriod.Duration; spread && period > 0 {
			delay = rand.N(period) //nolint:gosec // spreads load, keeps no secret
		}
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}, delay)
	}
	return handler.TypedFuncs[*seedmanagementv1alpha1.ManagedSeed, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*seedmanagementv1alpha1.ManagedSeed], q queue) {
			add(q, e.Object, spreadCreate(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*seedmanagementv1alpha1.ManagedSeed], q queue) {
			add(q, e.ObjectNew, spreadUpdate(e.ObjectNew, *r.Config.JitterUpdates))
		},
	}
}

// managedSeedsOf returns requests for the ManagedSeeds of a Shoot.
func (r *reconciler) managedSeedsOf(ctx context.Context, shoot *corev1beta1.Shoot) []reconcile.Request {
	if shoot.Namespace != constants.GardenNamespace {
		return nil
	}
	list := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := r.gardenCache.List(ctx, list, client.InNamespace(shoot.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing ManagedSeeds")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if object := &list.Items[i]; object.Spec.Shoot != nil && object.Spec.Shoot.Name == shoot.Name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
	}
	return requests
}

// errWatching has a watch continue.
var errWatching = errors.New("the watch continues")

// watchSeeds watches the Seeds of ManagedSeeds, which gardener-apiserver labels. The cache of the garden has the Seed of this gardenlet only. A
// ManagedSeed waits for its Seed to be registered, and to be deleted, and for its gardenlet to be ready.
func (r *reconciler) watchSeeds(mgr manager.Manager) source.Source {
	return kube.Background(mgr, func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		known := map[string]corev1beta1.ConditionStatus{}
		_ = kube.Await(ctx, r.GardenAPI, &corev1beta1.SeedList{}, func(seeds []*corev1beta1.Seed) error {
			current := map[string]corev1beta1.ConditionStatus{}
			for _, seed := range seeds {
				current[seed.Name] = gardenletReady(seed).Status
			}
			for _, name := range changed(known, current, r.SeedName) {
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}})
			}
			known = current
			return errWatching
		}, nil, client.MatchingLabels{constants.PrefixSeedName + r.SeedName: "true"})
	})
}

// renews says whether an operator wants the gardenlet to get a new client certificate.
func renews(object metav1.Object) bool {
	return object.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationRenewKubeconfig
}
