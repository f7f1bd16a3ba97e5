package referenceprotection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
)

// reconciler maintains the finalizer of Secrets and ConfigMaps.
type reconciler struct {
	gardenCache client.Client
}

// Reconcile adds the finalizer to an object if others refer to it, and removes it otherwise.
func (r *reconciler) Reconcile(ctx context.Context, ref references.Ref) (reconcile.Result, error) {
	obj := kube.Metadata(corev1.SchemeGroupVersion.WithKind(ref.Kind))
	if err := r.gardenCache.Get(ctx, ref.ObjectKey(), obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	referenced, err := r.referenced(ctx, ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	if referenced && obj.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // it cannot get the finalizer any more, and keeps it if it has it
	}
	return kube.Result(setFinalizer(ctx, r.gardenCache, obj, referenced))
}

// referenced reports whether any object refers to an object.
func (r *reconciler) referenced(ctx context.Context, ref references.Ref) (bool, error) {
	for _, kind := range referrers {
		keys, err := references.Referrers(ctx, r.gardenCache, kind, ref, 1)
		if err != nil || len(keys) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// concerns reports whether an object has the finalizer or should have it, according to the cache. An object that refers to it and is
// not in the cache yet causes an event of its own.
func (r *reconciler) concerns(kind string, obj client.Object) bool {
	if controllerutil.ContainsFinalizer(obj, constants.FinalizerReferenceProtection) {
		return true
	}
	referenced, err := r.referenced(context.Background(), references.RefOf(kind, obj))
	return err != nil || referenced
}

// referrerReconciler maintains the finalizer of the objects of a kind that refer to Secrets and ConfigMaps.
type referrerReconciler struct {
	gardenCache client.Client
	kind        client.Object
}

// Reconcile adds the finalizer to an object if it refers to others, and removes it otherwise.
func (r *referrerReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.kind.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	if err := r.gardenCache.Get(ctx, req.NamespacedName, obj, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if settled(obj) {
		return reconcile.Result{}, nil
	}
	if err := setFinalizer(ctx, r.gardenCache, obj, len(protectedBy(obj)) > 0); err != nil {
		return kube.Result(fmt.Errorf("protect %s: %w", req, err))
	}
	return reconcile.Result{}, nil
}

// settled reports whether an object has the finalizer exactly if it refers to others. One that is being deleted can only lose it.
func settled(obj client.Object) bool {
	has, desired := controllerutil.ContainsFinalizer(obj, constants.FinalizerReferenceProtection), len(protectedBy(obj)) > 0
	return has == desired || desired && obj.GetDeletionTimestamp() != nil
}

// setFinalizer adds the finalizer to an object or removes it.
func setFinalizer(ctx context.Context, gardenCache client.Client, obj client.Object, desired bool) error {
	if desired {
		return kube.AddFinalizer(ctx, gardenCache, obj, constants.FinalizerReferenceProtection)
	}
	return kube.RemoveFinalizer(ctx, gardenCache, obj, constants.FinalizerReferenceProtection)
}
