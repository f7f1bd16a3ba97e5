package encryption

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are read at once to be rewritten.
const pageSize = 500

// Rewrite has an API server write all objects of a resource again. Afterwards they are stored as it encrypts now. The error
// is a meta.NoResourceMatchError if the API server does not serve the resource. The version may be empty, but not if the group is new: a
// client discovers the versions of a group only once.
func Rewrite(ctx context.Context, api client.Client, resource schema.GroupVersionResource) error {
	kind, err := api.RESTMapper().KindFor(resource)
	if err != nil {
		return fmt.Errorf("find kind of %s: %w", resource.GroupResource(), err)
	}
	return rewriteKind(ctx, api, kind)
}

// rewriteKind sends an empty patch for each object of a kind: the API server writes what it has read with an old key.
func rewriteKind(ctx context.Context, api client.Client, kind schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for {
		if err := api.List(ctx, list, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(kind)
			if err := api.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("rewrite %s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}
