// Package migration reports whether a Shoot is ready to be migrated to another seed.
//
// Reads Shoots and Seeds, and writes the constraint ReadyForMigration of Shoots. The gardenlet of the source seed, which has no permission to read
// the destination, waits for it. Source: compat/fleet.md, 1, "shoot-migration".
package migration

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Shoots are reconciled at the same time.
	ConcurrentSyncs int
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("shoot-migration").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(watch.NoDeletes(), predicate.NewPredicateFuncs(concerned))).
		// What the constraint is about. A Seed that does not move anything has no Shoot that is concerned.
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.shootsOf), builder.WithPredicates(
			watch.Updated(func(before, after *corev1beta1.Seed) bool { return seen(before) != seen(after) }))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// concerned reports whether a Shoot needs the constraint, or has it.
func concerned(obj client.Object) bool {
	shoot := obj.(*corev1beta1.Shoot) //nolint:forcetypeassert // the kind that is watched
	return moves(shoot) || constraintOf(shoot) != nil
}

// shootsOf returns requests for the Shoots that move from or to a Seed.
func (r *reconciler) shootsOf(ctx context.Context, seed client.Object) []reconcile.Request {
	shoots := &corev1beta1.ShootList{}
	if err := r.gardenCache.List(ctx, shoots, references.To(references.RefOf(references.Seed, seed)), client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing the Shoots of a Seed", "seed", seed.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range shoots.Items {
		if concerned(&shoots.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&shoots.Items[i])})
		}
	}
	return requests
}
