// Package finalizer keeps the ShootState of a Shoot from being deleted while the control plane of the Shoot is migrated to another seed,
// as the state cannot be collected a second time.
//
// Reads Shoots, and metadata of ShootStates, which are large and contain secrets; writes the finalizer "core.gardener.cloud/shootstate" of
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
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

var kind = corev1beta1.SchemeGroupVersion.WithKind("ShootState")

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many ShootStates are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("shootstate-finalizer").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		WatchesMetadata(kube.Metadata(kind), &handler.EnqueueRequestForObject{}, builder.WithPredicates(
			watch.NoDeletes(), watch.Updated(func(before, after client.Object) bool { return has(before) != has(after) }))).
		// At the start, every ShootState causes an event of its own.
		Watches(&corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(
			watch.NoCreates(), watch.Updated(func(before, after *corev1beta1.Shoot) bool {
				return before.MovesToOtherSeed() != after.MovesToOtherSeed()
			}))).
		Complete(&reconciler{gardenCache: mgr.GetClient()})
}

type reconciler struct {
	gardenCache client.Client
}

// Reconcile adds the finalizer to a ShootState while its Shoot, which has the same name, is migrated, and removes it otherwise.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	state := kube.Metadata(kind)
	if err := r.gardenCache.Get(ctx, req.NamespacedName, state); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	change := controllerutil.RemoveFinalizer // also if the Shoot does not exist
	if shoot.MovesToOtherSeed() {
		if state.DeletionTimestamp != nil {
			return reconcile.Result{}, nil // it cannot be added any more, but stays if it exists
		}
		change = controllerutil.AddFinalizer
	}
	err := kube.PatchMetadata(ctx, r.gardenCache, state, func(o *metav1.PartialObjectMetadata) { change(o, constants.FinalizerShootState) })
	if err != nil {
		return kube.Result(fmt.Errorf("keep ShootState: %w", err))
	}
	return reconcile.Result{}, nil
}

func has(state client.Object) bool {
	return controllerutil.ContainsFinalizer(state, constants.FinalizerShootState)
}
