// Package lifecycle finds out when the gardenlet of a Seed stops.
//
// It reads Seeds, Shoots and the Leases that gardenlets renew. It writes the condition GardenletReady of Seeds, the conditions and
// constraints of Shoots, and the annotation of ManagedSeeds that asks for new credentials of their gardenlet. Source:
// concepts.txt, Seed controller, "Lifecycle" reconciler.
package lifecycle

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Add adds the controller to a manager.
func Add(mgr manager.Manager, config *controllermanagerconfigv1alpha1.SeedControllerConfiguration, clk clock.Clock) error {
	r := &reconciler{
		gardenClient: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clk,
		periods: periods{monitor: config.MonitorPeriod.Duration, shootMonitor: config.ShootMonitorPeriod.Duration, sync: config.SyncPeriod.Duration},
	}
	return builder.ControllerManagedBy(mgr).Named("gardenlet-lifecycle").WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		// A Seed comes back by itself: what counts is that nothing happens to its Lease.
		For(&corev1beta1.Seed{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}
