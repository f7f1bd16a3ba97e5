// Package hibernation hibernates Shoots and wakes them up on the schedules in their spec.
//
// It reads Shoots, and writes spec.hibernation.enabled and status.lastHibernationTriggerTime of them. Source: concepts.txt, Shoot
// controller, "Hibernation" reconciler.
package hibernation

import (
	"time"
	_ "time/tzdata" // schedules name time zones, and the image contains no files for them

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

const name = "shoot-hibernation"

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Shoots are reconciled at the same time.
	ConcurrentSyncs int
	// TriggerDeadline is how late a trigger of a schedule may be executed, if it was missed because the controller did not run.
	TriggerDeadline time.Duration
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: mgr.GetClient(), recorder: mgr.GetEventRecorder(name)}
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(watch.NoDeletes(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return scheduled(obj.(*corev1beta1.Shoot)) //nolint:forcetypeassert // the kind that is watched
		}), watch.Updated(func(before, after *corev1beta1.Shoot) bool {
			// A failed Shoot is ignored until it is retried.
			return before.Generation != after.Generation || kube.ShootFailed(before) != kube.ShootFailed(after)
		}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

func scheduled(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && len(shoot.Spec.Hibernation.Schedules) > 0
}
