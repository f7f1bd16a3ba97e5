package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"gardener.cloud/gardener/internal/apiserver/scheme"
	"gardener.cloud/gardener/internal/validation/core"
)

// Settings are what resources depend on besides their types.
type Settings struct {
	// Validation are the feature gates that rules depend on.
	Validation core.Options
	// Garden reads objects of the garden API, Kube ConfigMaps of the garden cluster.
	Garden, Kube client.Reader
	// Authorizer tells administrators of the landscape from members of projects.
	Authorizer authorizer.Authorizer
	// RotationInterval is the age of a shoot's credentials from which on its users are told to renew them.
	RotationInterval time.Duration
	// Clock says when credentials begin and end.
	Clock clock.PassiveClock
	// AdminKubeconfigMaxExpiration and ViewerKubeconfigMaxExpiration are how long kubeconfigs live at most.
	AdminKubeconfigMaxExpiration, ViewerKubeconfigMaxExpiration time.Duration
	// Tokens say how tokens of workload identities are made.
	Tokens TokenSettings
}

// Groups returns all groups with the stores of their resources, ready to be installed.
func Groups(
	s *runtime.Scheme, codecs serializer.CodecFactory, getter generic.RESTOptionsGetter, settings Settings,
) ([]*genericapiserver.APIGroupInfo, error) {
	parameters := runtime.NewParameterCodec(s)
	groups := map[string]*genericapiserver.APIGroupInfo{}
	for _, k := range kinds(settings.Validation) {
		group := groups[k.gvk.Group]
		if group == nil {
			info := genericapiserver.NewDefaultAPIGroupInfo(k.gvk.Group, s, parameters, codecs)
			group = &info
			groups[k.gvk.Group] = group
		}
		resources, err := k.storage(s, getter, settings)
		if err != nil {
			return nil, fmt.Errorf("store of %s: %w", k.plural, err)
		}
		for _, version := range k.versions() {
			if err := scheme.AddFieldSelectors(s, version.WithKind(k.gvk.Kind), k.selectors()...); err != nil {
				return nil, fmt.Errorf("field selectors of %s: %w", k.plural, err)
			}
			if group.VersionedResourcesStorageMap[version.Version] == nil {
				group.VersionedResourcesStorageMap[version.Version] = map[string]rest.Storage{}
			}
			maps.Copy(group.VersionedResourcesStorageMap[version.Version], resources)
		}
	}
	var sorted []*genericapiserver.APIGroupInfo
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		sorted = append(sorted, groups[name])
	}
	return sorted, nil
}

// storage returns the resources of a kind by their paths, such as "shoots" and "shoots/status".
func (k *kind) storage(s *runtime.Scheme, getter generic.RESTOptionsGetter, settings Settings) (map[string]rest.Storage, error) {
	create := strategy{ObjectTyper: s, NameGenerator: names.SimpleNameGenerator, kind: k}
	if k.warnings != nil {
		create.warn = func(obj runtime.Object) []string { return k.warnings(obj, settings) }
	}
	store := &genericregistry.Store{
		NewFunc: k.newObject, NewListFunc: k.newList,
		DefaultQualifiedResource:  k.gvk.GroupVersion().WithResource(k.plural).GroupResource(),
		SingularQualifiedResource: k.gvk.GroupVersion().WithResource(k.singular).GroupResource(),
		PredicateFunc:             k.predicate,
		CreateStrategy:            create, UpdateStrategy: create, DeleteStrategy: create, ResetFieldsStrategy: create,
		TableConvertor: table{k},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter, AttrFunc: k.attributes, Indexers: k.indexers()}); err != nil {
		return nil, err
	}
	resources := map[string]rest.Storage{k.plural: &resource{store, k}}
	main := &strategyStore{store, create}
	if k.status {
		resources[k.plural+"/status"] = main.view(statusStrategy{create})
	}
	if k.subresources != nil {
		for name, storage := range k.subresources(main, settings) {
			resources[k.plural+"/"+name] = storage
		}
	}
	return resources, nil
}

// strategyStore is the store of a kind with its strategy.
type strategyStore struct {
	*genericregistry.Store
	strategy strategy
}

// view returns a subresource that is the same object, changed by another strategy.
func (s *strategyStore) view(update interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
},
) *view {
	store := *s.Store
	store.UpdateStrategy, store.ResetFieldsStrategy = update, update
	return &view{&store}
}

// resource serves the objects of a kind.
type resource struct {
	*genericregistry.Store
	kind *kind
}

// ShortNames implements rest.ShortNamesProvider.
func (r *resource) ShortNames() []string { return r.kind.shortNames }

// Categories implements rest.CategoriesProvider.
func (r *resource) Categories() []string { return r.kind.categories }

// view serves a subresource that is the same object as the main resource, such as its status.
type view struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = &view{}
	_ rest.ResetFieldsStrategy = &view{}
)

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

// table prints objects of a kind.
type table struct{ *kind }

// ConvertToTable implements rest.TableConvertor.
func (t table) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if list, err := meta.ListAccessor(obj); err == nil {
		out.ResourceVersion, out.Continue, out.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else {
		out.ResourceVersion = metaOf(obj).ResourceVersion
	}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = t.columns
	}
	var err error
	out.Rows, err = metatable.MetaToTableRow(obj, func(obj runtime.Object, m metav1.Object, name, age string) ([]any, error) {
		cells := append(append([]any{name}, t.cells(obj)...), age)
		if t.afterAge != nil {
			cells = append(cells, t.afterAge(obj)...)
		}
		return cells, nil
	})
	return out, err
}
