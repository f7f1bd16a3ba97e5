package kind

import (
	"context"
	"reflect"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Strategies are how requests for a kind are prepared and validated.
type Strategies struct {
	Create rest.RESTCreateStrategy
	Update rest.RESTUpdateStrategy
	// Status is for the status subresource, nil if the kind has none.
	Status rest.RESTUpdateStrategy
}

// Strategies implements Any.
func (k *Kind[T]) Strategies(typer runtime.ObjectTyper) Strategies {
	main := k.strategy(typer)
	all := Strategies{Create: main, Update: main}
	if k.HasStatus {
		all.Status = statusStrategy[T]{main}
	}
	return all
}

func (k *Kind[T]) strategy(typer runtime.ObjectTyper) strategy[T] {
	return strategy[T]{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, kind: k}
}

// strategy is how objects of a kind are created and changed.
type strategy[T any] struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind *Kind[T]
}

var (
	_ rest.RESTCreateStrategy  = strategy[any]{}
	_ rest.RESTUpdateStrategy  = strategy[any]{}
	_ rest.ResetFieldsStrategy = strategy[any]{}
)

// NamespaceScoped implements rest.RESTCreateStrategy.
func (s strategy[T]) NamespaceScoped() bool { return s.kind.Namespaced }

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy[T]) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s strategy[T]) AllowUnconditionalUpdate() bool { return s.kind.UnconditionalUpdate }

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s strategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if s.kind.Warnings == nil {
		return nil
	}
	return s.kind.Warnings(typed[T](obj), nil)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy[T]) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	if s.kind.Warnings == nil {
		return nil
	}
	return s.kind.Warnings(typed[T](obj), typed[T](old))
}

// Validate implements rest.RESTCreateStrategy.
func (s strategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.kind.Validate(typed[T](obj))
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s strategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.kind.ValidateUpdate(typed[T](obj), typed[T](old))
}

// Canonicalize implements rest.RESTCreateStrategy and rest.RESTUpdateStrategy.
func (s strategy[T]) Canonicalize(obj runtime.Object) {
	if s.kind.Canonicalize != nil {
		s.kind.Canonicalize(typed[T](obj))
	}
	compact(reflect.ValueOf(obj).Elem())
}

// PrepareForCreate implements rest.RESTCreateStrategy. It sets the first generation and removes the status.
func (s strategy[T]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	clearType(obj)
	if s.kind.HasGeneration {
		metaOf(obj).Generation = 1
	}
	if s.kind.HasStatus && !s.kind.StatusOnCreate {
		part(obj, "Status").SetZero()
	}
	if s.kind.PrepareForCreate != nil {
		s.kind.PrepareForCreate(typed[T](obj))
	}
}

// PrepareForUpdate implements rest.RESTUpdateStrategy. It keeps the status, and counts a change of the spec as a new generation.
func (s strategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	clearType(obj)
	if s.kind.HasStatus {
		part(obj, "Status").Set(part(old, "Status"))
	}
	if s.kind.PrepareForUpdate != nil {
		s.kind.PrepareForUpdate(typed[T](obj), typed[T](old))
	}
	if !s.kind.HasGeneration {
		return
	}
	operationStarts := s.kind.takeOperations(obj, old)
	changed := !sameContent(obj, old)
	if changed && s.kind.RolledOut != nil {
		changed = s.kind.RolledOut(typed[T](obj), typed[T](old))
	}
	restarts := s.kind.Restarts != nil && s.kind.Restarts(typed[T](obj), typed[T](old))
	meta := metaOf(obj)
	if meta.Generation = metaOf(old).Generation; operationStarts || changed || restarts { // requests cannot set it
		meta.Generation++
	}
}

// takeOperations reports whether the object is annotated with an operation that starts a new generation. An operation that stays
// for a controller counts once, not with each update until the controller has removed it.
func (k *Kind[T]) takeOperations(obj, old runtime.Object) bool {
	meta := metaOf(obj)
	annotation, ok := meta.Annotations[constants.GardenerOperation]
	if !ok || k.Operation == nil {
		return false
	}
	before := strings.Split(metaOf(old).Annotations[constants.GardenerOperation], constants.OperationsSeparator)
	var left []string
	starts, removed := false, false
	for operation := range strings.SplitSeq(annotation, constants.OperationsSeparator) {
		switch k.Operation(typed[T](obj), operation) {
		case Taken:
			starts, removed = true, true
			continue
		case Counted:
			starts = starts || !slices.Contains(before, operation)
		case Uncounted:
		}
		left = append(left, operation)
	}
	switch {
	case len(left) == 0:
		delete(meta.Annotations, constants.GardenerOperation)
	case removed:
		meta.Annotations[constants.GardenerOperation] = strings.Join(left, constants.OperationsSeparator)
	}
	return starts
}

// GetResetFields implements rest.ResetFieldsStrategy: requests cannot set the status, so they do not become its field manager.
func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if !s.kind.HasStatus {
		return nil
	}
	return s.kind.resetFields("status")
}

func (k *Kind[T]) resetFields(path string) map[fieldpath.APIVersion]*fieldpath.Set {
	sets := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, gvk := range k.GroupVersionKinds() {
		sets[fieldpath.APIVersion(gvk.GroupVersion().String())] = fieldpath.NewSet(fieldpath.MakePathOrDie(path))
	}
	return sets
}

// statusStrategy is how the status subresource of a kind is changed.
type statusStrategy[T any] struct{ strategy[T] }

// WarningsOnUpdate implements rest.RESTUpdateStrategy. Controllers need none.
func (s statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// PrepareForUpdate implements rest.RESTUpdateStrategy. It keeps everything but status and metadata.
func (s statusStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	clearType(obj)
	part(obj, "Spec").Set(part(old, "Spec"))
	metaOf(obj).Generation = metaOf(old).Generation
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s statusStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if s.kind.ValidateStatusUpdate == nil {
		return nil
	}
	return s.kind.ValidateStatusUpdate(typed[T](obj), typed[T](old))
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (s statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.kind.resetFields("spec")
}

// clearType removes apiVersion and kind of a request: objects in memory have none.
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
