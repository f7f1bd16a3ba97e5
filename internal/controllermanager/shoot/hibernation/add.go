// Package hibernation puts Shoots to sleep and wakes them up on the schedules in their spec.
//
// It reads Shoots, and writes spec.hibernation.enabled and status.lastHibernationTriggerTime of them. Source: concepts.txt, Shoot
// controller, "Hibernation" reconciler.
package hibernation

import (
	_ "time/tzdata" // schedules name time zones, and there is no file system that has them

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

const name = "shoot-hibernation"

// Add adds the controller to a manager.
func Add(mgr manager.Manager, config *controllermanagerconfigv1alpha1.ShootHibernationControllerConfiguration, clk clock.Clock) error {
	r := &reconciler{gardenClient: mgr.GetClient(), recorder: mgr.GetEventRecorder(name), clock: clk, deadline: config.TriggerDeadlineDuration.Duration}
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return scheduled(e.Object) },
			// A Shoot that failed may be retried.
			UpdateFunc: func(e event.UpdateEvent) bool {
				return scheduled(e.ObjectNew) && (e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || failed(e.ObjectOld) != failed(e.ObjectNew))
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

func scheduled(obj client.Object) bool {
	hibernation := obj.(*corev1beta1.Shoot).Spec.Hibernation //nolint:forcetypeassert // the kind that is watched
	return hibernation != nil && len(hibernation.Schedules) > 0
}
