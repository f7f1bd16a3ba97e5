package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Apply writes objects with server-side apply, in the given order, and stops at the first error. The owner is the field
// manager: fields that it applied before and leaves out now are removed, and it takes over fields that have another
// manager. The given objects are not changed.
func Apply(ctx context.Context, c client.Client, owner string, objects ...client.Object) error {
	for _, object := range objects {
		if _, err := ApplyOne(ctx, c, owner, object); err != nil {
			return err
		}
	}
	return nil
}

// ApplyOne is Apply for one object. It returns the object as the server has it now.
func ApplyOne(ctx context.Context, c client.Client, owner string, object client.Object) (*unstructured.Unstructured, error) {
	u, err := Manifest(c.Scheme(), object)
	if err != nil {
		return nil, err
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("apply %s %s: %w", u.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return u, nil
}

// Manifest is an object as a user would write it to a file, with its kind and without what only the server and the object's controller set:
// status and creationTimestamp, whose zero values would be applied too. The object is not changed.
func Manifest(scheme *runtime.Scheme, object client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	if _, ok := object.(runtime.Unstructured); ok {
		content = runtime.DeepCopyJSON(content) // It is the object's own.
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")
	return u, nil
}
