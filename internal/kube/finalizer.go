package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer puts a finalizer on an object, unless it is there. The error is a conflict if the object has changed since it was read.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	return PatchMetadata(ctx, c, obj, func(o *metav1.PartialObjectMetadata) { controllerutil.AddFinalizer(o, finalizer) })
}

// RemoveFinalizer takes a finalizer off an object, if it is there. An object that is gone has none.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	return client.IgnoreNotFound(PatchMetadata(ctx, c, obj, func(o *metav1.PartialObjectMetadata) { controllerutil.RemoveFinalizer(o, finalizer) }))
}
