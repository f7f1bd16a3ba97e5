// Package conditions shows the conditions of a Seed on the Shoot that it is made from.
//
// Reads Seeds, ManagedSeeds and Shoots; writes conditions of Shoots whose types are those of Seeds. Source: concepts.txt, Shoot
// controller, "Conditions".
package conditions

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/uses"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// Add adds the controller.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	r := &reconciler{client: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("shoot-conditions").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		// ManagedSeeds are only allowed in this namespace, so the Shoots of users are not looked at.
		For(&corev1beta1.Shoot{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return obj.GetNamespace() == constants.GardenNamespace
		}), predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*corev1beta1.Shoot), e.ObjectNew.(*corev1beta1.Shoot) //nolint:forcetypeassert // the kind that is watched
				return !apiequality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.shootOf), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*corev1beta1.Seed), e.ObjectNew.(*corev1beta1.Seed) //nolint:forcetypeassert // the kind that is watched
				return !apiequality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
			},
		})).
		// A Shoot may become a Seed, or be one no longer.
		Watches(&seedmanagementv1alpha1.ManagedSeed{}, watch.Mapped(func(obj client.Object) []reconcile.Request {
			managed := obj.(*seedmanagementv1alpha1.ManagedSeed) //nolint:forcetypeassert // the kind that is watched
			if managed.Spec.Shoot == nil {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: managed.Namespace, Name: managed.Spec.Shoot.Name}}}
		})).
		Complete(r)
}

type reconciler struct {
	client client.Client
}

// shootOf returns the Shoot that a Seed is made from.
func (r *reconciler) shootOf(ctx context.Context, seed client.Object) []reconcile.Request {
	managed := &seedmanagementv1alpha1.ManagedSeed{}
	key := types.NamespacedName{Namespace: constants.GardenNamespace, Name: seed.GetName()}
	// It reads from memory, and an error can only mean that there is none. If it comes later, it has an event of its own.
	if err := r.client.Get(ctx, key, managed); err != nil || managed.Spec.Shoot == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: managed.Namespace, Name: managed.Spec.Shoot.Name}}}
}

// Reconcile copies the conditions of the Seed to the Shoot.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.client.Get(ctx, req.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	seed, err := r.seedOf(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	if seed == nil && selfHosted(shoot) {
		return reconcile.Result{}, nil // it has conditions of these types of its own
	}
	before := shoot.DeepCopy()
	shoot.Status.Conditions = merge(shoot.Status.Conditions, seed)
	if apiequality.Semantic.DeepEqual(before.Status.Conditions, shoot.Status.Conditions) {
		return reconcile.Result{}, nil
	}
	// The gardenlet writes conditions of other types to the same list.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, shoot, patch); err != nil {
		return kube.Result(fmt.Errorf("patch conditions of Shoot: %w", err))
	}
	return reconcile.Result{}, nil
}

// seedOf returns the Seed that is made from a Shoot, or nil.
func (r *reconciler) seedOf(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.Seed, error) {
	managed := &seedmanagementv1alpha1.ManagedSeedList{}
	err := r.client.List(ctx, managed, client.InNamespace(shoot.Namespace), client.MatchingFields{uses.ManagedSeedByShoot: shoot.Name})
	if err != nil {
		return nil, fmt.Errorf("list ManagedSeeds: %w", err)
	}
	if len(managed.Items) == 0 {
		return nil, nil
	}
	seed := &corev1beta1.Seed{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: managed.Items[0].Name}, seed); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return seed, nil
}

func selfHosted(shoot *corev1beta1.Shoot) bool {
	return slices.ContainsFunc(shoot.Spec.Provider.Workers, func(w corev1beta1.Worker) bool { return w.ControlPlane != nil })
}
