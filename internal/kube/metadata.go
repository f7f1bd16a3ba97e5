package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// PatchMetadata changes labels, annotations, finalizers and owner references of an object. The function gets a copy of them to
// change, and only differences are sent. The object itself is not changed, so it may come from a cache and need not be
// complete.
//
// Finalizers and owner references are lists, which cannot be merged: if one of these differs and the object has changed since it
// was read, the error is a conflict.
func PatchMetadata(ctx context.Context, c client.Client, obj client.Object, change func(*metav1.PartialObjectMetadata)) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return err
	}
	before := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), ResourceVersion: obj.GetResourceVersion(),
		Labels: obj.GetLabels(), Annotations: obj.GetAnnotations(),
		Finalizers: obj.GetFinalizers(), OwnerReferences: obj.GetOwnerReferences(), DeletionTimestamp: obj.GetDeletionTimestamp(),
	}}
	before.SetGroupVersionKind(gvk)
	after := before.DeepCopy()
	change(after)
	if apiequality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFrom(before)
	if !slices.Equal(before.Finalizers, after.Finalizers) || !apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err := c.Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("patch metadata of %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// Metadata returns an empty object to watch or read only the metadata of a kind.
func Metadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(gvk)
	return obj
}

// SplitAnnotation returns the parts of an annotation that is a list, without empty ones and surrounding space.
func SplitAnnotation(value, separator string) []string {
	var parts []string
	for part := range strings.SplitSeq(value, separator) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// AddToAnnotation adds parts to an annotation that is a list, unless it has them.
func AddToAnnotation(meta *metav1.ObjectMeta, key, separator string, parts ...string) {
	all := SplitAnnotation(meta.Annotations[key], separator)
	before := len(all)
	for _, part := range parts {
		if !slices.Contains(all, part) {
			all = append(all, part)
		}
	}
	if len(all) > before {
		metav1.SetMetaDataAnnotation(meta, key, strings.Join(all, separator))
	}
}

// RemoveFromAnnotation removes parts from an annotation that is a list with a separator, and the annotation when nothing is left. What others add to it
// meanwhile stays. The client reads without a cache.
func RemoveFromAnnotation(ctx context.Context, c client.Client, obj client.Object, key, separator string, parts []string) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := Metadata(gvk)
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := current.DeepCopy()
		left := slices.DeleteFunc(SplitAnnotation(current.Annotations[key], separator), func(part string) bool { return slices.Contains(parts, part) })
		if len(left) == 0 {
			delete(current.Annotations, key)
		} else {
			current.Annotations[key] = strings.Join(left, separator)
		}
		if maps.Equal(before.Annotations, current.Annotations) {
			return nil
		}
		return client.IgnoreNotFound(c.Patch(ctx, current, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	})
}
