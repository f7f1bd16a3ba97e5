package guard

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/internal/kube"
)

// reconciler guards the objects of a kind.
type reconciler struct {
	gardenCache client.Client
	object      client.Object
	guard       Guard
}

// Reconcile adds the finalizer, or removes it when the object is being deleted and not used.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	if err := r.gardenCache.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.guard.Keep(ctx, obj); err != nil {
		return kube.Result(fmt.Errorf("keep %s: %w", req, err))
	}
	return reconcile.Result{}, nil
}
