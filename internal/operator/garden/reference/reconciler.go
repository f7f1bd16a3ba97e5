package reference

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// reconciler maintains the finalizer of Secrets and ConfigMaps.
type reconciler struct {
	Values
	runtimeCache client.Client
	runtimeAPI   client.Reader
}

// Reconcile adds the finalizer to an object if a Garden refers to it, and removes it if no object does.
func (r *reconciler) Reconcile(ctx context.Context, ref Ref) (reconcile.Result, error) {
	obj := kube.Metadata(corev1.SchemeGroupVersion.WithKind(ref.Kind))
	if err := r.runtimeCache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	referenced, err := byGarden(ctx, r.runtimeCache, ref)
	if err != nil || referenced == guarded(obj) {
		return reconcile.Result{}, err
	}
	if referenced {
		if obj.DeletionTimestamp != nil {
			return reconcile.Result{}, nil // it cannot get the finalizer any more
		}
		return kube.Result(kube.AddFinalizer(ctx, r.runtimeCache, obj, constants.FinalizerReferenceProtection))
	}
	if used, err := used(ctx, r.runtimeAPI, ref); err != nil || used {
		return reconcile.Result{}, err
	}
	if r.Referenced != nil {
		if referenced, err := r.Referenced(ctx, ref); err != nil || referenced {
			return reconcile.Result{}, err
		}
	}
	return kube.Result(kube.RemoveFinalizer(ctx, r.runtimeCache, obj, constants.FinalizerReferenceProtection))
}

// mayConcern reports whether a Garden refers to an object, according to the cache. A Garden that is not in the cache yet causes an event of its own.
func (r *reconciler) mayConcern(kind string, obj client.Object) bool {
	referenced, err := byGarden(context.Background(), r.runtimeCache, Ref{kind, obj.GetName()})
	return err != nil || referenced
}

// Referenced reports whether a Garden refers to a Secret or ConfigMap, or objects of the garden still need it. The controller that protects what Extensions
// refer to checks it before it removes the finalizer.
func Referenced(ctx context.Context, runtimeCache, runtimeAPI client.Reader, ref Ref) (bool, error) {
	if referenced, err := byGarden(ctx, runtimeCache, ref); err != nil || referenced {
		return referenced, err
	}
	return used(ctx, runtimeAPI, ref)
}

// byGarden reports whether a Garden refers to a Secret or ConfigMap.
func byGarden(ctx context.Context, runtimeCache client.Reader, ref Ref) (bool, error) {
	gardens := &operatorv1alpha1.GardenList{}
	if err := runtimeCache.List(ctx, gardens); err != nil {
		return false, fmt.Errorf("list Gardens: %w", err)
	}
	return slices.ContainsFunc(gardens.Items, func(garden operatorv1alpha1.Garden) bool { return slices.Contains(Of(&garden), ref) }), nil
}

// gardenReconciler maintains the finalizer of Gardens.
type gardenReconciler struct {
	runtimeCache client.Client
}

// Reconcile adds the finalizer to a Garden if it refers to others, and removes it otherwise. It is the last one of a Garden that is being deleted,
// so that the objects that it referred to are released even if the process was down meanwhile.
func (r *gardenReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	garden := &operatorv1alpha1.Garden{}
	if err := r.runtimeCache.Get(ctx, req.NamespacedName, garden); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	refers := len(Of(garden)) > 0
	switch {
	case refers == guarded(garden):
		return reconcile.Result{}, nil
	case !refers:
		return kube.Result(kube.RemoveFinalizer(ctx, r.runtimeCache, garden, constants.FinalizerReferenceProtection))
	case garden.DeletionTimestamp != nil:
		return reconcile.Result{}, nil // it cannot get the finalizer any more
	}
	return kube.Result(kube.AddFinalizer(ctx, r.runtimeCache, garden, constants.FinalizerReferenceProtection))
}
