// Package lifecycle reports the conditions of Seeds and their Shoots as Unknown when the gardenlet stops renewing its Lease.
//
// It reads Seeds, Shoots and the Leases that gardenlets renew. It writes the condition GardenletReady of Seeds, the conditions and
// constraints of Shoots that gardenlets write, and the operation annotation of ManagedSeeds whose gardenlet needs new credentials. Source: concepts.txt, Seed
// controller, "Lifecycle" reconciler.
package lifecycle

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Seeds are reconciled at the same time.
	ConcurrentSyncs int
	// MonitorPeriod is how long a gardenlet may go without renewing its Lease before GardenletReady of its Seed turns Unknown.
	MonitorPeriod time.Duration
	// ShootMonitorPeriod is how long it may go without before the conditions of its Shoots turn Unknown too.
	ShootMonitorPeriod time.Duration
	// SyncPeriod is how often the Lease is read while it is not renewed.
	SyncPeriod time.Duration
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader()}
	return builder.ControllerManagedBy(mgr).Named("gardenlet-lifecycle").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// Each reconciliation requeues the Seed for when its Lease expires unless it is renewed.
		For(&corev1beta1.Seed{}, builder.WithPredicates(watch.NoUpdates())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}
