package encryption

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are read at once to be rewritten.
const pageSize = 500

// Rewrite has an API server write all objects of a resource again. Afterwards they are stored as it encrypts now. The error
// is a meta.NoResourceMatchError only if the API server does not serve the resource: what is not rewritten cannot be read without the old key.
func Rewrite(ctx context.Context, api client.Client, resource schema.GroupResource) error {
	kind, err := kindOf(ctx, api, resource)
	if err != nil {
		return fmt.Errorf("find kind of %s: %w", resource, err)
	}
	return rewriteKind(ctx, api, kind)
}

// kindOf returns the kind of a resource. A REST mapper discovers the versions of a group only once. An API server that has just started lists only some of
// those that it aggregates, so that each version that may have the resource is asked for by itself before the answer is that there is none.
func kindOf(ctx context.Context, api client.Client, resource schema.GroupResource) (schema.GroupVersionKind, error) {
	kind, notFound := api.RESTMapper().KindFor(resource.WithVersion(""))
	if !meta.IsNoMatchError(notFound) {
		return kind, notFound
	}
	defined, err := definedKinds(ctx, api, resource)
	if err != nil {
		return kind, err
	}
	for _, candidate := range append(knownKinds(api.Scheme(), resource), defined...) {
		mapping, err := api.RESTMapper().RESTMapping(candidate.GroupKind(), candidate.Version)
		if !meta.IsNoMatchError(err) {
			if err != nil {
				return kind, err
			}
			return mapping.GroupVersionKind, nil
		}
	}
	if len(defined) > 0 {
		return kind, errors.New("the API server does not serve it yet, but its CustomResourceDefinition exists")
	}
	return kind, notFound
}

// knownKinds returns the versions of the kind of a resource in a scheme.
func knownKinds(scheme *runtime.Scheme, resource schema.GroupResource) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind := range scheme.AllKnownTypes() {
		if kind.Group != resource.Group || kind.Version == runtime.APIVersionInternal || strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		if plural, _ := meta.UnsafeGuessKindToResource(kind); plural.Resource == resource.Resource {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// definedKinds returns the served versions of the kind of a custom resource.
func definedKinds(ctx context.Context, api client.Client, resource schema.GroupResource) ([]schema.GroupVersionKind, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(ctx, client.ObjectKey{Name: resource.String()}, definition); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var kinds []schema.GroupVersionKind
	for _, version := range definition.Spec.Versions {
		if version.Served {
			kinds = append(kinds, schema.GroupVersionKind{Group: resource.Group, Version: version.Name, Kind: definition.Spec.Names.Kind})
		}
	}
	return kinds, nil
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
