package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer adds a finalizer to an object, unless it has it. The error is a conflict if the object has changed since it was read.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	return PatchMetadata(ctx, c, obj, func(o *metav1.PartialObjectMetadata) { controllerutil.AddFinalizer(o, finalizer) })
}

// RemoveFinalizer removes a finalizer from an object, if it has it. A missing object is not an error.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	return client.IgnoreNotFound(PatchMetadata(ctx, c, obj, func(o *metav1.PartialObjectMetadata) { controllerutil.RemoveFinalizer(o, finalizer) }))
}
