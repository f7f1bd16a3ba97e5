// Package maintenance updates the versions of Shoots, renews their credentials and reconciles them, once in every time window of theirs.
//
// It reads Shoots and the cloud profiles that they refer to, and writes versions in the spec, annotations that ask for operations and
// tasks, and status.lastMaintenance of Shoots. Source: concepts.txt, Shoot controller, "Maintenance" reconciler.
package maintenance

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
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
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

const name = "shoot-maintenance"

// Add adds the controller to a manager.
func Add(mgr manager.Manager, config *controllermanagerconfigv1alpha1.ShootMaintenanceControllerConfiguration, clk clock.Clock) error {
	r := &reconciler{
		gardenClient: mgr.GetClient(), recorder: mgr.GetEventRecorder(name), clock: clk, started: clk.Now(), tasks: tasks(config),
	}
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(predicate.Funcs{
			// Other changes do not change when maintenance is due. What a maintenance writes itself is none of these.
			UpdateFunc: func(e event.UpdateEvent) bool {
				return asked(e.ObjectNew) && !asked(e.ObjectOld) || !apiequality.Semantic.DeepEqual(window(e.ObjectNew), window(e.ObjectOld))
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// tasks are what the reconciliation after a maintenance does besides the usual.
func tasks(config *controllermanagerconfigv1alpha1.ShootMaintenanceControllerConfiguration) []string {
	var all []string
	if enabled := config.EnableShootControlPlaneRestarter; enabled != nil && *enabled {
		all = append(all, constants.ShootTaskRestartControlPlanePods)
	}
	if enabled := config.EnableShootCoreAddonRestarter; enabled != nil && *enabled {
		all = append(all, constants.ShootTaskRestartCoreAddons)
	}
	return all
}

// asked tells whether somebody wants a maintenance now.
func asked(obj client.Object) bool {
	return obj.GetAnnotations()[constants.GardenerOperation] == constants.ShootOperationMaintain
}

func window(obj client.Object) *corev1beta1.MaintenanceTimeWindow {
	maintenance := obj.(*corev1beta1.Shoot).Spec.Maintenance //nolint:forcetypeassert // the kind that is watched
	if maintenance == nil {
		return nil
	}
	return maintenance.TimeWindow
}
