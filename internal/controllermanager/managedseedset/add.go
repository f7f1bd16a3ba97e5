// Package managedseedset creates and deletes the Shoots and ManagedSeeds of ManagedSeedSets, one replica after the other.
//
// It reads ManagedSeedSets, Shoots, ManagedSeeds and Seeds, and writes finalizers and status of the former, and Shoots and ManagedSeeds in their
// namespace. Source: concepts.txt, ManagedSeedSet controller.
package managedseedset

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

const name = "managedseedset"

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many sets are reconciled at the same time.
	ConcurrentSyncs int
	// MaxShootRetries is how often a failed Shoot is retried.
	MaxShootRetries int
	// SyncPeriod is how often each set is checked.
	SyncPeriod time.Duration
	// Clock is for pending replicas.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(name)}
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &seedmanagementv1alpha1.ManagedSeedSet{}, handler.OnlyControllerOwner())
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&seedmanagementv1alpha1.ManagedSeedSet{}, builder.WithPredicates(watch.NoDeletes(), predicate.GenerationChangedPredicate{})).
		// Their states, health and deletion decide about the next step.
		Watches(&corev1beta1.Shoot{}, owned).
		Watches(&seedmanagementv1alpha1.ManagedSeed{}, owned).
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.setOf)).
		Complete(r)
}

// setOf returns a request for the set whose ManagedSeed a Seed is of.
func (r *reconciler) setOf(ctx context.Context, seed client.Object) []reconcile.Request {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.GetName()}, managedSeed); err != nil {
		if client.IgnoreNotFound(err) != nil {
			logf.FromContext(ctx).Error(err, "Reading ManagedSeed", "name", seed.GetName())
		}
		return nil
	}
	owner := metav1.GetControllerOf(managedSeed)
	if owner == nil || owner.Kind != "ManagedSeedSet" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: managedSeed.Namespace, Name: owner.Name}}}
}
