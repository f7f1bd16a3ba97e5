// Package conditions copies the conditions of a Seed to the Shoot that it runs in.
//
// Reads Seeds, ManagedSeeds and Shoots; writes conditions of Shoots whose types are those of Seeds. Source: concepts.txt, Shoot
// controller, "Conditions".
package conditions

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Shoots are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("shoot-conditions").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// ManagedSeeds are only allowed in this namespace, so Shoots in other namespaces are ignored.
		For(&corev1beta1.Shoot{}, builder.WithPredicates(watch.NoDeletes(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return obj.GetNamespace() == constants.GardenNamespace
		}), watch.Updated(func(before, after *corev1beta1.Shoot) bool {
			return !apiequality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
		}))).
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.shootOf), builder.WithPredicates(
			watch.Updated(func(before, after *corev1beta1.Seed) bool {
				return !apiequality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
			}))).
		// The ManagedSeed of a Shoot may be created or deleted.
		Watches(&seedmanagementv1alpha1.ManagedSeed{}, watch.ChangedReferences(references.Shoot)).
		Complete(r)
}

type reconciler struct {
	gardenCache client.Client
}

// shootOf returns a request for the Shoot that a Seed runs in.
func (r *reconciler) shootOf(ctx context.Context, seed client.Object) []reconcile.Request {
	managed := &seedmanagementv1alpha1.ManagedSeed{}
	key := types.NamespacedName{Namespace: constants.GardenNamespace, Name: seed.GetName()}
	// A read from the cache fails only if there is no ManagedSeed. The creation of one is an event.
	if err := r.gardenCache.Get(ctx, key, managed); err != nil {
		return nil
	}
	return references.Requests(managed, references.Shoot)
}

// Reconcile copies the conditions of the Seed to the Shoot.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	seed, err := r.seedOf(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	if seed == nil && shoot.SelfHosted() {
		return reconcile.Result{}, nil // its gardenlet writes conditions of these types
	}
	before := shoot.DeepCopy()
	shoot.Status.Conditions = merge(shoot.Status.Conditions, seed)
	if apiequality.Semantic.DeepEqual(before.Status.Conditions, shoot.Status.Conditions) {
		return reconcile.Result{}, nil
	}
	// The gardenlet writes conditions of other types to the same list.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.gardenCache.Status().Patch(ctx, shoot, patch); err != nil {
		return kube.Result(fmt.Errorf("patch conditions of Shoot: %w", err))
	}
	return reconcile.Result{}, nil
}

// seedOf returns the Seed that runs in a Shoot, or nil.
func (r *reconciler) seedOf(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.Seed, error) {
	managed := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := r.gardenCache.List(ctx, managed, references.To(references.RefOf(references.Shoot, shoot))); err != nil {
		return nil, fmt.Errorf("list ManagedSeeds: %w", err)
	}
	if len(managed.Items) == 0 {
		return nil, nil
	}
	seed := &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, types.NamespacedName{Name: managed.Items[0].Name}, seed); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return seed, nil
}
