// Package maintenance updates the versions of Shoots, rotates their credentials and reconciles them, once in every maintenance time window.
//
// It reads Shoots and the cloud profiles that they refer to, and writes versions in the spec, the annotations for operations and tasks, and
// status.lastMaintenance of Shoots. Source: concepts.txt, Shoot controller, "Maintenance" reconciler.
package maintenance

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

const name = "shoot-maintenance"

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Shoots are reconciled at the same time.
	ConcurrentSyncs int
	// RestartControlPlane is whether controllers in the control plane are restarted in every maintenance.
	RestartControlPlane bool
	// RestartCoreAddons is whether core addons in the cluster are restarted in every maintenance.
	RestartCoreAddons bool
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{
		gardenCache: mgr.GetClient(), recorder: mgr.GetEventRecorder(name), clock: v.Clock, started: v.Clock.Now(), tasks: tasks(v),
	}
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// Other updates do not change when maintenance is due, among them those that a maintenance makes itself.
		For(&corev1beta1.Shoot{}, builder.WithPredicates(watch.NoDeletes(), watch.Updated(func(before, after *corev1beta1.Shoot) bool {
			return requested(after) && !requested(before) || !apiequality.Semantic.DeepEqual(window(after), window(before))
		}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// tasks returns the tasks for the reconciliation after a maintenance. Infrastructure and DNSRecords are otherwise reconciled only when they change: extensions
// repair what others have changed, and do what a new version of them needs, once a day and not every hour, as their requests are limited.
func tasks(v Values) []string {
	all := []string{
		constants.ShootTaskDeployInfrastructure, constants.ShootTaskDeployDNSRecordInternal, constants.ShootTaskDeployDNSRecordExternal,
		constants.ShootTaskDeployDNSRecordIngress,
	}
	if v.RestartControlPlane {
		all = append(all, constants.ShootTaskRestartControlPlanePods)
	}
	if v.RestartCoreAddons {
		all = append(all, constants.ShootTaskRestartCoreAddons)
	}
	return all
}

// requested reports whether a user has requested a maintenance now.
func requested(shoot *corev1beta1.Shoot) bool {
	return shoot.Annotations[constants.GardenerOperation] == constants.ShootOperationMaintain
}

func window(shoot *corev1beta1.Shoot) *corev1beta1.MaintenanceTimeWindow {
	if shoot.Spec.Maintenance == nil {
		return nil
	}
	return shoot.Spec.Maintenance.TimeWindow
}
