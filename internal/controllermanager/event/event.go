// Package event deletes events that are not about Shoots after a while, so that the API server can keep those about Shoots longer.
//
// Reads and deletes Events. Source: concepts.txt, "Event Controller".
package event

import (
	"context"
	"fmt"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Add adds the controller. Without a configuration there is none.
func Add(mgr manager.Manager, config *controllermanagerconfigv1alpha1.EventControllerConfiguration, clk clock.Clock) error {
	if config == nil {
		return nil
	}
	r := &reconciler{gardenClient: mgr.GetClient(), clock: clk, ttl: config.TTLNonShootEvents.Duration}
	return builder.ControllerManagedBy(mgr).Named("event").WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		// An event that happens again has its later end found when its first one comes.
		For(&eventsv1.Event{}, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool {
				return !aboutShoot(e.Object.(*eventsv1.Event)) //nolint:forcetypeassert // the kind that is watched
			},
			UpdateFunc: func(event.UpdateEvent) bool { return false },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

type reconciler struct {
	gardenClient client.Client
	clock        clock.Clock
	ttl          time.Duration
}

// Reconcile deletes an event when its time is over.
func (r *reconciler) Reconcile(ctx context.Context, e *eventsv1.Event) (reconcile.Result, error) {
	if aboutShoot(e) {
		return reconcile.Result{}, nil
	}
	if left := lastSeen(e).Add(r.ttl).Sub(r.clock.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if err := r.gardenClient.Delete(ctx, e); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete: %w", err)
	}
	return reconcile.Result{}, nil
}

// aboutShoot tells whether an event is about a Shoot.
func aboutShoot(e *eventsv1.Event) bool {
	return e.Regarding.Kind == "Shoot" && strings.HasPrefix(e.Regarding.APIVersion, corev1beta1.SchemeGroupVersion.Group+"/")
}

// lastSeen returns when an event last happened. Old clients write other fields than new ones.
func lastSeen(e *eventsv1.Event) time.Time {
	last := e.CreationTimestamp.Time
	for _, other := range []time.Time{e.EventTime.Time, e.DeprecatedFirstTimestamp.Time, e.DeprecatedLastTimestamp.Time} {
		if other.After(last) {
			last = other
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}
