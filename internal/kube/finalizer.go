package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer puts a finalizer on an object, unless it is there. It fails with a conflict if the object has changed meanwhile: a
// list of finalizers is patched as a whole.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	return patchFinalizers(ctx, c, obj, finalizer, controllerutil.AddFinalizer)
}

// RemoveFinalizer takes a finalizer off an object, if it is there. An object that is gone has none.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	return client.IgnoreNotFound(patchFinalizers(ctx, c, obj, finalizer, controllerutil.RemoveFinalizer))
}

func patchFinalizers(ctx context.Context, c client.Client, obj client.Object, finalizer string, change func(client.Object, string) bool) error {
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	if !change(obj, finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, obj, patch); err != nil {
		return fmt.Errorf("change finalizers of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
