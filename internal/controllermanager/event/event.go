// Package event deletes events that are not about Shoots after some time, so that the API server can keep those about Shoots longer.
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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many events are reconciled at the same time.
	ConcurrentSyncs int
	// TTL is how long an event is kept that is not about a Shoot.
	TTL time.Duration
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("event").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// If an event is observed again before it expires, the reconciliation that was queued at its creation requeues it.
		For(&eventsv1.Event{}, builder.WithPredicates(watch.NoUpdates(), watch.NoDeletes(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return !aboutShoot(obj.(*eventsv1.Event)) //nolint:forcetypeassert // the kind that is watched
		}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{Values: v, gardenCache: mgr.GetClient()}))
}

type reconciler struct {
	Values
	gardenCache client.Client
}

// Reconcile deletes an event that has expired.
func (r *reconciler) Reconcile(ctx context.Context, e *eventsv1.Event) (reconcile.Result, error) {
	if aboutShoot(e) {
		return reconcile.Result{}, nil
	}
	if left := lastObserved(e).Add(r.TTL).Sub(r.Clock.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if err := r.gardenCache.Delete(ctx, e); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete: %w", err)
	}
	return reconcile.Result{}, nil
}

// aboutShoot reports whether an event is about a Shoot.
func aboutShoot(e *eventsv1.Event) bool {
	return e.Regarding.Kind == "Shoot" && strings.HasPrefix(e.Regarding.APIVersion, corev1beta1.SchemeGroupVersion.Group+"/")
}

// lastObserved returns when an event was last observed. Clients of the old events API write other fields than those of the new one.
func lastObserved(e *eventsv1.Event) time.Time {
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
