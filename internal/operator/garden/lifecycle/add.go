// Package lifecycle reconciles and deletes the Garden: the system components of the runtime cluster, the control plane of the virtual cluster, and
// the components of Gardener in it.
//
// It reads and writes these objects in the runtime cluster, mostly in namespace garden, those of the virtual cluster through ManagedResources, and the
// status and the finalizer of the Garden. A deleted Garden is gone when nothing of it is left but the volumes of etcd. Source: concepts.txt,
// "Gardener Operator"; docs/operator.md.
package lifecycle

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// Failed passes are repeated after firstRetry, then after twice that, and so on up to lastRetry.
	firstRetry, lastRetry = 2 * time.Second, 2 * time.Minute
	// passTimeout is the end of one pass: the end of its flows, and some time to report it.
	passTimeout = 2*flowTimeout + time.Minute
)

// Values are what the controller works with.
type Values struct {
	// RuntimeAPI is the runtime cluster without a cache: a flow reads what it has just written.
	RuntimeAPI client.WithWatch
	// RuntimeVersion reads the Kubernetes version of the runtime cluster.
	RuntimeVersion discovery.ServerVersionInterface
	// Connect returns a client for a virtual cluster.
	Connect func(config *rest.Config) (client.WithWatch, error)
	// Discover returns which kinds of objects a virtual cluster serves, as far as it responds.
	Discover func(config *rest.Config) ([]*metav1.APIResourceList, error)
	// Gardener is the running gardener-operator.
	Gardener corev1beta1.Gardener
	// Images are those of all components, and SystemImages those of system components.
	Images       imagevector.Vector
	SystemImages systemcomponents.Images
	// Config is that of the process.
	Config *operatorconfigv1alpha1.OperatorConfiguration
	// TerminateTLS is whether the gateway ends connections of shoots whose control planes run in this cluster, too.
	TerminateTLS bool
	// FlowMetrics counts and times the tasks. It may be nil.
	FlowMetrics *flow.Metrics
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the runtime cluster.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, runtimeCache: mgr.GetClient(), recorder: mgr.GetEventRecorder("garden")}
	return builder.ControllerManagedBy(mgr).Named("garden").
		WithOptions(options(v.Config)).
		For(&operatorv1alpha1.Garden{}, builder.WithPredicates(r.changed())).
		Complete(r)
}

// options are those of the controller. A Garden that is refused, as there is another one, need not wait until that is reconciled.
func options(config *operatorconfigv1alpha1.OperatorConfiguration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: ptr.Deref(config.Controllers.Garden.ConcurrentSyncs, 1), ReconciliationTimeout: passTimeout,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// changed ignores changes of the status, which this controller and the care controller write. An operation that stays in the annotation, as it is for
// another controller, does not count a second time. A change of the spec and a deletion end the flow that runs: it may wait for what the change fixes.
func (r *reconciler) changed() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			operation := e.ObjectNew.GetAnnotations()[constants.GardenerOperation]
			deleted := e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
			spec := e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration()
			if deleted || spec {
				r.running.interrupt(e.ObjectNew.GetName(), r.Clock.Now(), deleted)
			}
			return spec || deleted || operation != "" && operation != e.ObjectOld.GetAnnotations()[constants.GardenerOperation]
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// olderGarden returns the name of another Garden that was created before, or nothing.
func (r *reconciler) olderGarden(ctx context.Context, garden *operatorv1alpha1.Garden) (string, error) {
	list := &operatorv1alpha1.GardenList{}
	if err := r.runtimeCache.List(ctx, list); err != nil {
		return "", fmt.Errorf("list Gardens: %w", err)
	}
	for i := range list.Items {
		g := &list.Items[i]
		if g.UID == garden.UID {
			continue
		}
		if older := g.CreationTimestamp.Before(&garden.CreationTimestamp); older || g.CreationTimestamp.Equal(&garden.CreationTimestamp) && g.Name < garden.Name {
			return g.Name, nil
		}
	}
	return "", nil
}
