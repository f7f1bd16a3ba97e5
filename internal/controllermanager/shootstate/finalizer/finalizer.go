// Package finalizer keeps the ShootState of a Shoot from being deleted while the Shoot moves to another seed, as the state cannot be
// gathered a second time.
//
// Reads Shoots, and metadata of ShootStates, which are large and hold secrets; writes the finalizer "core.gardener.cloud/shootstate" of
// ShootStates. Source: compat/controllers.yaml, "shootstate-finalizer".
package finalizer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

var kind = corev1beta1.SchemeGroupVersion.WithKind("ShootState")

// Add adds the controller.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	return builder.ControllerManagedBy(mgr).Named("shootstate-finalizer").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		WatchesMetadata(kube.Metadata(kind), &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.Funcs{
			// What else changes in a ShootState is nothing to its finalizer.
			UpdateFunc: func(e event.UpdateEvent) bool { return has(e.ObjectOld) != has(e.ObjectNew) },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(&corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.Funcs{
			// At the start, every ShootState is looked at anyway.
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(e event.UpdateEvent) bool {
				return moves(e.ObjectOld.(*corev1beta1.Shoot)) != moves(e.ObjectNew.(*corev1beta1.Shoot)) //nolint:forcetypeassert // the kind that is watched
			},
		})).
		Complete(&reconciler{client: mgr.GetClient()})
}

type reconciler struct {
	client client.Client
}

// Reconcile gives a ShootState the finalizer while its Shoot, which has the same name, moves.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	state := kube.Metadata(kind)
	if err := r.client.Get(ctx, req.NamespacedName, state); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot := &corev1beta1.Shoot{}
	if err := r.client.Get(ctx, req.NamespacedName, shoot, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	change := controllerutil.RemoveFinalizer // also if there is no Shoot
	if moves(shoot) {
		if state.DeletionTimestamp != nil {
			return reconcile.Result{}, nil // it cannot be added any more, but what is there stays
		}
		change = controllerutil.AddFinalizer
	}
	err := kube.PatchMetadata(ctx, r.client, state, func(o *metav1.PartialObjectMetadata) { change(o, constants.FinalizerShootState) })
	if err != nil {
		return kube.Result(fmt.Errorf("keep ShootState: %w", err))
	}
	return reconcile.Result{}, nil
}

func has(state client.Object) bool {
	return controllerutil.ContainsFinalizer(state, constants.FinalizerShootState)
}

// moves says whether a Shoot is between the beginning of its move to another seed and the end of its restoration there.
func moves(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	if last == nil {
		return false
	}
	return last.Type == corev1beta1.LastOperationTypeMigrate ||
		last.Type == corev1beta1.LastOperationTypeRestore && last.State != corev1beta1.LastOperationStateSucceeded
}
