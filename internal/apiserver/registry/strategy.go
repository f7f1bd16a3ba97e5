// Package registry stores the resources of the garden API.
//
// The kinds differ in data and in a few functions only, which kinds.go lists; the strategies, tables and stores made of
// them are the same for all.
package registry

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// kind is what the API server knows about a kind.
type kind struct {
	gvk schema.GroupVersionKind
	// also are further versions that it is served in.
	also             []string
	plural, singular string
	shortNames       []string
	categories       []string
	namespaced       bool
	// status is whether there is a status subresource.
	status bool
	// keepStatus is whether a new object keeps the status that it comes with. Otherwise it is dropped: users do not set it.
	keepStatus bool
	// generation is whether changes of the spec are counted.
	generation bool
	// unconditional is whether an update may leave the resource version out, and overwrite whatever is there.
	unconditional bool
	columns       []metav1.TableColumnDefinition
	// subresources are those besides the status.
	subresources func(main *strategyStore, settings Settings) map[string]rest.Storage

	newObject, newList func() runtime.Object
	prepareCreate      func(ctx context.Context, obj runtime.Object)
	prepareUpdate      func(ctx context.Context, obj, old runtime.Object)
	// canonicalize sets labels that follow from the rest, once that is known to be valid.
	canonicalize                   func(obj runtime.Object)
	validate                       func(obj runtime.Object) field.ErrorList
	validateUpdate, validateStatus func(obj, old runtime.Object) field.ErrorList
	// rolledOut tells whether a difference outside of metadata and status counts as a new generation. By default it does.
	rolledOut func(obj, old runtime.Object) bool
	// warnings tell users what to mind when they change an object, besides what they changed.
	warnings func(obj runtime.Object, settings Settings) []string
	// operation tells what an operation that the object is annotated with does to its generation.
	operation func(obj runtime.Object, operation string) effect
	// fields are what lists and watches select by, besides name and namespace.
	fields map[string]func(obj runtime.Object) string
	// indexed are those fields that lists are often selected by: the watch cache has an index of each.
	indexed []string
	// cells are the cells between name and age, afterAge those behind it.
	cells, afterAge func(obj runtime.Object) []any
}

// effect is what an operation does to the generation of its object.
type effect int

const (
	// uncounted operations are for somebody else, or for nobody at present.
	uncounted effect = iota
	// counted operations begin as a new generation. The annotation stays, as a controller reads it.
	counted
	// taken operations are a new generation, and nothing more: the annotation is removed.
	taken
)

func metaOf(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// attributes returns what selectors look at.
func (k *kind) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	meta := metaOf(obj)
	set := fields.Set{"metadata.name": meta.Name}
	if k.namespaced {
		set["metadata.namespace"] = meta.Namespace
	}
	for path, value := range k.fields {
		set[path] = value(obj)
	}
	return meta.Labels, set, nil
}

// selectors are the fields that lists and watches can select by.
func (k *kind) selectors() []string {
	paths := []string{"metadata.name"}
	if k.namespaced {
		paths = append(paths, "metadata.namespace")
	}
	return append(paths, slices.Sorted(maps.Keys(k.fields))...)
}

func (k *kind) predicate(label labels.Selector, selector fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: selector, GetAttrs: k.attributes, IndexFields: k.indexed}
}

// indexers returns the indices of the watch cache.
func (k *kind) indexers() *cache.Indexers {
	indexers := cache.Indexers{}
	for _, path := range k.indexed {
		value := k.fields[path]
		indexers[storage.FieldIndex(path)] = func(obj any) ([]string, error) { return []string{value(obj.(runtime.Object))}, nil }
	}
	return &indexers
}

// versions are all versions that the kind is served in.
func (k *kind) versions() []schema.GroupVersion {
	versions := []schema.GroupVersion{k.gvk.GroupVersion()}
	for _, version := range k.also {
		versions = append(versions, schema.GroupVersion{Group: k.gvk.Group, Version: version})
	}
	return versions
}

// strategy is how objects of a kind are created and changed.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	*kind
	// warn tells users what to mind when they change an object. It may be nil.
	warn func(obj runtime.Object) []string
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
)

func (s strategy) NamespaceScoped() bool                                     { return s.namespaced }
func (s strategy) AllowCreateOnUpdate() bool                                 { return false }
func (s strategy) AllowUnconditionalUpdate() bool                            { return s.unconditional }
func (s strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.validate(obj)
}

func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.validateUpdate(obj, old)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	if s.warn == nil {
		return nil
	}
	return s.warn(obj)
}

// Canonicalize implements rest.RESTCreateStrategy and rest.RESTUpdateStrategy.
func (s strategy) Canonicalize(obj runtime.Object) {
	if s.canonicalize != nil {
		s.canonicalize(obj)
	}
	compact(reflect.ValueOf(obj).Elem())
}

// PrepareForCreate starts the count of generations and drops the status.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	clearType(obj)
	if s.generation {
		metaOf(obj).Generation = 1
	}
	if s.status && !s.keepStatus {
		part(obj, "Status").SetZero()
	}
	if s.prepareCreate != nil {
		s.prepareCreate(ctx, obj)
	}
}

// PrepareForUpdate keeps the status, and counts a change of what is wanted as a new generation.
func (s strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	clearType(obj)
	if s.status {
		part(obj, "Status").Set(part(old, "Status"))
	}
	if s.prepareUpdate != nil {
		s.prepareUpdate(ctx, obj, old)
	}
	if !s.generation {
		return
	}
	begins := s.takeOperations(obj, old)
	changed := !sameContent(obj, old)
	if changed && s.rolledOut != nil {
		changed = s.rolledOut(obj, old)
	}
	count(obj, old, begins || changed)
}

// count sets the generation, which requests cannot.
func count(obj, old runtime.Object, changed bool) {
	meta := metaOf(obj)
	if meta.Generation = metaOf(old).Generation; changed {
		meta.Generation++
	}
}

// takeOperations tells whether the object is annotated with an operation that begins a new generation. An operation that stays
// for a controller counts once, not with each update until the controller has removed it.
func (k *kind) takeOperations(obj, old runtime.Object) bool {
	meta := metaOf(obj)
	annotation, ok := meta.Annotations[constants.GardenerOperation]
	if !ok || k.operation == nil {
		return false
	}
	before := strings.Split(metaOf(old).Annotations[constants.GardenerOperation], constants.OperationsSeparator)
	var left []string
	begins, removed := false, false
	for operation := range strings.SplitSeq(annotation, constants.OperationsSeparator) {
		switch k.operation(obj, operation) {
		case taken:
			begins, removed = true, true
			continue
		case counted:
			begins = begins || !slices.Contains(before, operation)
		case uncounted:
		}
		left = append(left, operation)
	}
	switch {
	case len(left) == 0:
		delete(meta.Annotations, constants.GardenerOperation)
	case removed:
		meta.Annotations[constants.GardenerOperation] = strings.Join(left, constants.OperationsSeparator)
	}
	return begins
}

// GetResetFields names the fields that requests cannot set, so that nobody comes to own them.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.reset("status", s.status)
}

func (k *kind) reset(path string, on bool) map[fieldpath.APIVersion]*fieldpath.Set {
	sets := map[fieldpath.APIVersion]*fieldpath.Set{}
	if on {
		for _, version := range k.versions() {
			sets[fieldpath.APIVersion(version.String())] = fieldpath.NewSet(fieldpath.MakePathOrDie(path))
		}
	}
	return sets
}

// statusStrategy is how the status subresource of a kind is changed.
type statusStrategy struct{ strategy }

// WarningsOnUpdate implements rest.RESTUpdateStrategy. Controllers need none.
func (s statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// PrepareForUpdate keeps everything but status and metadata.
func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	clearType(obj)
	part(obj, "Spec").Set(part(old, "Spec"))
	metaOf(obj).Generation = metaOf(old).Generation
}

func (s statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if s.validateStatus == nil {
		return nil
	}
	return s.validateStatus(obj, old)
}

func (s statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.reset("spec", true)
}

// clearType drops apiVersion and kind of a request: objects in memory have none.
func clearType(obj runtime.Object) {
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
}

// part is a field of an object.
func part(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// sameContent compares objects without type, metadata and status.
func sameContent(a, b runtime.Object) bool {
	va, vb := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range va.NumField() {
		switch va.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
			continue
		}
		if !apiequality.Semantic.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface()) {
			return false
		}
	}
	return true
}
