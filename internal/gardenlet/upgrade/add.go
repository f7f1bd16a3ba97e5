// Package upgrade deploys the gardenlet itself with the chart, the settings and the configuration of its Gardenlet.
//
// It reads the Gardenlet with the name of the seed in the garden, and Secrets for its registry; it writes the condition GardenletReconciled and the
// observed generation, and removes operations. In the seed it applies the objects of the chart. What changes is tried: the guard (package guard),
// another process, applies the former objects if the new gardenlet does not work, and what was rolled back is not deployed again before the
// Gardenlet changes. Deployments that an operator forces, and those with a kubeconfig, are gardener-operator's. Deleting a Gardenlet changes nothing.
// Source: concepts.txt, gardenlet, "Gardenlet Controller".
package upgrade

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
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

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed, and of the Gardenlet.
	SeedName string
	// Garden is the cluster with the Gardenlet.
	Garden cluster.Cluster
	// GardenAPI is the API server of the garden, for Secrets and operations, which are not read from the cache.
	GardenAPI client.Client
	// SeedAPI is the API server of the seed.
	SeedAPI client.WithWatch
	// SeedVersion reads the version of Kubernetes, which charts ask for.
	SeedVersion discovery.ServerVersionInterface
	// KubeconfigSecret is the Secret with the kubeconfig for the garden. Nil if the gardenlet does not renew it.
	KubeconfigSecret *corev1.SecretReference
	// HostsGarden says whether a garden runs in the seed.
	HostsGarden func(context.Context) (bool, error)
	// Pod is the name of the pod of this process.
	Pod string
	// ReachesGarden says whether the process has renewed the Lease of the seed in the garden.
	ReachesGarden func() bool
	// SyncPeriod is how often an unchanged Gardenlet is reconciled.
	SyncPeriod time.Duration
	// Clock is for conditions and trials.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: v.Garden.GetClient(), charts: &chart.Puller{}}
	return builder.ControllerManagedBy(mgr).Named("gardenlet").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1, ReconciliationTimeout: passTimeout,
			// A trial ends after some minutes, by which the gardenlet has to have confirmed that it reaches the garden.
			RateLimiter: kube.RateLimiter(trial.SteadyTime),
		}).
		// The status is the controller's own. An operation that the operator has done is removed without a new generation.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &seedmanagementv1alpha1.Gardenlet{},
			&handler.TypedEnqueueRequestForObject[*seedmanagementv1alpha1.Gardenlet]{}, predicate.TypedFuncs[*seedmanagementv1alpha1.Gardenlet]{
				UpdateFunc: func(e event.TypedUpdateEvent[*seedmanagementv1alpha1.Gardenlet]) bool {
					before, after := e.ObjectOld.Annotations, e.ObjectNew.Annotations
					return e.ObjectOld.Generation != e.ObjectNew.Generation || before[constants.GardenerOperation] != after[constants.GardenerOperation] ||
						before[seedmanagementv1alpha1.AnnotationCreatedByGardenlet] != after[seedmanagementv1alpha1.AnnotationCreatedByGardenlet]
				},
				DeleteFunc: func(event.TypedDeleteEvent[*seedmanagementv1alpha1.Gardenlet]) bool { return false },
			})).
		// The guard becomes ready, and decides.
		WatchesRawSource(r.watch(mgr, &appsv1.DeploymentList{}, &appsv1.Deployment{}, gardenlet.GuardName)).
		WatchesRawSource(r.watch(mgr, &corev1.SecretList{}, &corev1.Secret{}, trial.SecretName)).
		Complete(r)
}

// errWatching has a watch continue.
var errWatching = errors.New("the watch continues")

// watch watches one object in the namespace of the gardenlet. The caches of the manager would have all of its kind.
func (r *reconciler) watch(mgr manager.Manager, list client.ObjectList, kind client.Object, name string) source.Source {
	return kube.Background(mgr, func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		_ = kube.AwaitKind(ctx, r.SeedAPI, kind, list, func([]client.Object) error {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: constants.GardenNamespace, Name: r.SeedName}})
			return errWatching
		}, nil, client.InNamespace(constants.GardenNamespace), client.MatchingFields{metav1.ObjectNameField: name})
	})
}
