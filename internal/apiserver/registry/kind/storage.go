package kind

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Storage implements Any.
func (k *Kind[T]) Storage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	newList, err := k.newList(scheme)
	if err != nil {
		return nil, err
	}
	served := k.GroupVersionKind.GroupVersion().WithResource(k.Plural)
	main := k.strategy(scheme)
	store := &genericregistry.Store{
		NewFunc: k.newObject, NewListFunc: newList,
		DefaultQualifiedResource:  served.GroupResource(),
		SingularQualifiedResource: k.GroupVersionKind.GroupVersion().WithResource(k.singular()).GroupResource(),
		PredicateFunc:             k.predicate,
		CreateStrategy:            main, UpdateStrategy: main, DeleteStrategy: main, ResetFieldsStrategy: main,
		TableConvertor: table[T]{k},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: getter, AttrFunc: k.attributes, Indexers: k.indexers(), TriggerFunc: k.triggers(),
	}); err != nil {
		return nil, err
	}
	resources := map[string]rest.Storage{k.Plural: &Resource{Store: store, GroupVersionResource: served, shortNames: k.ShortNames, categories: k.Categories}}
	if k.HasStatus {
		resources[k.Plural+"/status"] = newView(store, statusStrategy[T]{main})
	}
	if k.Subresources != nil {
		for name, storage := range k.Subresources(&Main[T]{Store: store, typer: scheme}) {
			resources[k.Plural+"/"+name] = storage
		}
	}
	return resources, nil
}

// Resource serves the objects of a kind.
type Resource struct {
	*genericregistry.Store
	GroupVersionResource   schema.GroupVersionResource
	shortNames, categories []string
}

// ShortNames implements rest.ShortNamesProvider.
func (r *Resource) ShortNames() []string { return r.shortNames }

// Categories implements rest.CategoriesProvider.
func (r *Resource) Categories() []string { return r.categories }

// Main is the main resource of a kind, for its subresources.
type Main[T any] struct {
	*genericregistry.Store
	typer runtime.ObjectTyper
}

// View returns a subresource that is the same object, changed by the rules of a variant of the kind.
func (m *Main[T]) View(variant *Kind[T]) rest.Storage {
	return newView(m.Store, variant.strategy(m.typer))
}

// view serves a subresource that is the same object as the main resource, such as its status.
type view struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = &view{}
	_ rest.ResetFieldsStrategy = &view{}
)

func newView(main *genericregistry.Store, update interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
},
) *view {
	store := *main
	store.UpdateStrategy, store.ResetFieldsStrategy = update, update
	return &view{&store}
}

// New implements rest.Storage.
func (v *view) New() runtime.Object { return v.store.New() }

// Destroy implements rest.Storage. The store belongs to the main resource.
func (v *view) Destroy() {}

// Get implements rest.Getter.
func (v *view) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return v.store.Get(ctx, name, options)
}

// Update implements rest.Updater. It creates no object.
func (v *view) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return v.store.Update(ctx, name, info, create, update, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (v *view) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return v.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (v *view) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return v.store.ConvertToTable(ctx, obj, options)
}
