// Package state saves in the garden the state of control planes that must survive the loss of a seed.
//
// It reads Shoots in the garden. In the seed it reads their credentials that cannot be generated again, machines, states of extension resources, and
// the objects that these refer to. It writes the ShootStates of the Shoots. Source: concepts.txt, gardenlet, Shoot Controller, "State" Reconciler.
package state

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

const name = "shoot-state"

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the Shoots.
	Garden cluster.Cluster
	// GardenAPI is the API server of the garden, for ShootStates and ManagedSeeds, which are in no cache.
	GardenAPI client.Client
	// SeedAPI is the API server of the seed, with what is saved.
	SeedAPI client.Reader
	// Config says how often states are saved. If concurrentSyncs is zero, none is.
	Config gardenletconfigv1alpha1.ShootStateControllerConfiguration
	// Clock is for the time of a state.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	if *v.Config.ConcurrentSyncs <= 0 {
		return nil
	}
	return builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: *v.Config.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		// The first state is saved after the creation, and it is deleted with the Shoot. In between it is saved after each operation and periodically.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Shoot{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Shoot]{},
			predicate.TypedFuncs[*corev1beta1.Shoot]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Shoot]) bool {
					return e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil ||
						saveable(e.ObjectNew) && (!saveable(e.ObjectOld) || ended(e.ObjectNew).After(ended(e.ObjectOld)))
				},
				DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Shoot]) bool { return false },
			})).
		Complete(&reconciler{Values: v, gardenCache: v.Garden.GetClient()})
}
