// Package kind turns the description of a kind of the garden API into its strategies, tables and stores.
package kind

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Kind describes a kind with the Go type T. A function that is nil has nothing to do, except Validate and ValidateUpdate, which each
// kind has.
type Kind[T any] struct {
	GroupVersionKind schema.GroupVersionKind
	// FurtherVersions are versions that it is served in besides the one of GroupVersionKind.
	FurtherVersions []string
	// Plural is the name of the resource, such as "shoots".
	Plural     string
	ShortNames []string
	Categories []string
	Namespaced bool
	// HasStatus is whether there is a status subresource.
	HasStatus bool
	// StatusOnCreate is whether a new object keeps the status that the request has. Otherwise it is removed: users do not set it.
	StatusOnCreate bool
	// HasGeneration is whether changes of the spec are counted in metadata.generation.
	HasGeneration bool
	// UnconditionalUpdate is whether an update may leave the resource version out, and overwrite any version.
	UnconditionalUpdate bool

	PrepareForCreate func(obj *T)
	PrepareForUpdate func(obj, old *T)
	// Canonicalize sets what follows from the rest, such as labels. The object was validated before.
	Canonicalize         func(obj *T)
	Validate             func(obj *T) field.ErrorList
	ValidateUpdate       func(obj, old *T) field.ErrorList
	ValidateStatusUpdate func(obj, old *T) field.ErrorList
	// RolledOut reports whether a difference outside of metadata and status counts as a new generation. Without it, each does.
	RolledOut func(obj, old *T) bool
	// Restarts reports whether a change of the metadata counts as a new generation. Without it, none does.
	Restarts func(obj, old *T) bool
	// Warnings are for users who create or update an object, besides those of the API machinery. There is no old object in a creation.
	Warnings func(obj, old *T) []string
	// Operation returns what an operation in the annotation gardener.cloud/operation does to the generation.
	Operation func(obj *T, operation string) Effect
	// Fields are what field selectors of lists and watches can name, besides name and namespace.
	Fields map[string]func(obj *T) string
	// InternalFields are what only lists of this process can select by, besides Fields.
	InternalFields map[string]func(obj *T) string
	// IndexedFields are those of both that many lists select by: the watch cache has an index of each.
	IndexedFields []string
	// WatchedField is the one of them that many watches select by, each with another value. The watch cache does not compare a change with
	// the selectors of those with other values: as many seeds as there are watch, and each has changes.
	WatchedField string
	// Columns of tables are those between Name and Age, ColumnsAfterAge the ones behind Age.
	Columns, ColumnsAfterAge []Column[T]
	// Conditions returns those of an object, for columns with a condition.
	Conditions func(obj *T) []corev1beta1.Condition
	// AgeAsString is whether the type of the column Age is "string" instead of "date".
	AgeAsString bool
	// Subresources returns those besides the status, by their names.
	Subresources func(main *Main[T]) map[string]rest.Storage
}

// Any is a Kind of any Go type.
type Any interface {
	// GroupVersionKinds are all versions that it is served in. The first is the one of its Go type.
	GroupVersionKinds() []schema.GroupVersionKind
	// FieldSelectors are the fields that lists and watches can select by.
	FieldSelectors() []string
	// Strategies returns how requests are prepared and validated.
	Strategies(typer runtime.ObjectTyper) Strategies
	// Storage returns the resources by their paths, such as "shoots" and "shoots/status". The scheme has the type and that of its list.
	Storage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (map[string]rest.Storage, error)
}

// Effect is what an operation does to the generation of its object.
type Effect int

const (
	// Uncounted operations start no new generation: another controller has them, or they are not possible at present.
	Uncounted Effect = iota
	// Counted operations start a new generation. The annotation stays, as a controller reads it.
	Counted
	// Taken operations start a new generation, and nothing else: the annotation is removed.
	Taken
)

// FixedEffects are operations that have the same effect on every object of a kind.
func FixedEffects[T any](effects map[string]Effect) func(*T, string) Effect {
	return func(_ *T, operation string) Effect { return effects[operation] }
}

// GroupVersionKinds implements Any.
func (k *Kind[T]) GroupVersionKinds() []schema.GroupVersionKind {
	versions := []schema.GroupVersionKind{k.GroupVersionKind}
	for _, version := range k.FurtherVersions {
		versions = append(versions, schema.GroupVersionKind{Group: k.GroupVersionKind.Group, Version: version, Kind: k.GroupVersionKind.Kind})
	}
	return versions
}

// FieldSelectors implements Any.
func (k *Kind[T]) FieldSelectors() []string {
	paths := []string{"metadata.name"}
	if k.Namespaced {
		paths = append(paths, "metadata.namespace")
	}
	return append(paths, slices.Sorted(maps.Keys(k.Fields))...)
}

func (k *Kind[T]) singular() string { return strings.ToLower(k.GroupVersionKind.Kind) }

func (k *Kind[T]) newObject() runtime.Object { return any(new(T)).(runtime.Object) }

// newList returns a function that creates lists of the kind: those that the scheme has under its name.
func (k *Kind[T]) newList(scheme *runtime.Scheme) (func() runtime.Object, error) {
	list := k.GroupVersionKind
	list.Kind += "List"
	obj, err := scheme.New(list)
	if err != nil {
		return nil, err
	}
	typ := reflect.TypeOf(obj).Elem()
	if items, ok := typ.FieldByName("Items"); !ok || items.Type != reflect.TypeFor[[]T]() {
		return nil, fmt.Errorf("%s is no list of %s", typ, reflect.TypeFor[T]())
	}
	return func() runtime.Object { return reflect.New(typ).Interface().(runtime.Object) }, nil
}

func typed[T any](obj runtime.Object) *T { return any(obj).(*T) }

func metaOf(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// attributes returns what selectors are compared with.
func (k *Kind[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	meta := metaOf(obj)
	set := fields.Set{"metadata.name": meta.Name}
	if k.Namespaced {
		set["metadata.namespace"] = meta.Namespace
	}
	for _, values := range []map[string]func(*T) string{k.Fields, k.InternalFields} {
		for path, value := range values {
			set[path] = value(typed[T](obj))
		}
	}
	return meta.Labels, set, nil
}

func (k *Kind[T]) predicate(label labels.Selector, selector fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: selector, GetAttrs: k.attributes, IndexFields: k.IndexedFields}
}

// indexers returns the indices of the watch cache.
func (k *Kind[T]) indexers() *cache.Indexers {
	indexers := cache.Indexers{}
	for _, path := range k.IndexedFields {
		value := k.field(path)
		indexers[storage.FieldIndex(path)] = func(obj any) ([]string, error) { return []string{value(obj.(*T))}, nil }
	}
	return &indexers
}

// triggers returns the field by which the watch cache finds the watches that a change may be for.
func (k *Kind[T]) triggers() storage.IndexerFuncs {
	if k.WatchedField == "" {
		return nil
	}
	value := k.field(k.WatchedField)
	return storage.IndexerFuncs{k.WatchedField: func(obj runtime.Object) string { return value(typed[T](obj)) }}
}

func (k *Kind[T]) field(path string) func(*T) string {
	if value, ok := k.Fields[path]; ok {
		return value
	}
	return k.InternalFields[path]
}
