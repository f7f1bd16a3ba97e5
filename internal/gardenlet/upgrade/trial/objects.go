package trial

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/kube"
)

// Previous is an object before an upgrade.
type Previous struct {
	// Object is the object, without what only the API server sets.
	Object *unstructured.Unstructured `json:"object"`
	// Missing says that it did not exist. Object then only identifies it.
	Missing bool `json:"missing,omitempty"`
}

// revision is the annotation with the number of a rollout, which its controller sets.
const revision = "deployment.kubernetes.io/revision"

// Snapshot reads objects as they are now.
func Snapshot(ctx context.Context, reader client.Reader, scheme *runtime.Scheme, objects []client.Object) ([]Previous, error) {
	previous := make([]Previous, 0, len(objects))
	for _, object := range objects {
		live, err := read(ctx, reader, scheme, object)
		if err != nil {
			return nil, err
		}
		before := &unstructured.Unstructured{Object: map[string]any{}}
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, err
		}
		if live != nil {
			before.Object = runtime.DeepCopyJSON(live.Object)
			unstructured.RemoveNestedField(before.Object, "status")
			unstructured.RemoveNestedField(before.Object, "metadata")
			before.SetLabels(live.GetLabels())
			annotations := live.GetAnnotations()
			delete(annotations, revision)
			before.SetAnnotations(annotations)
		}
		before.SetGroupVersionKind(gvk)
		before.SetNamespace(object.GetNamespace())
		before.SetName(object.GetName())
		previous = append(previous, Previous{Object: before, Missing: live == nil})
	}
	return previous, nil
}

// Differ returns the first of the objects that applying them would change, or "". The API server checks all of them: an error is about one that it
// would refuse.
func Differ(ctx context.Context, c client.Client, reader client.Reader, objects []client.Object) (string, error) {
	first := ""
	for _, object := range objects {
		differs, err := differ(ctx, c, reader, object)
		if err != nil {
			return "", err
		}
		if first == "" {
			first = differs
		}
	}
	return first, nil
}

// differ returns the kind and name of an object that would be changed, or "".
func differ(ctx context.Context, c client.Client, reader client.Reader, object client.Object) (string, error) {
	live, err := read(ctx, reader, c.Scheme(), object)
	if err != nil {
		return "", err
	}
	applied, err := kube.Manifest(c.Scheme(), object)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s %q", applied.GetKind(), client.ObjectKeyFromObject(object))
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(release.FieldOwner), client.ForceOwnership, client.DryRunAll)
	switch {
	case live == nil && apierrors.IsNotFound(err):
		return name, nil // what it needs, such as its namespace or the role of a binding, is to be created with it
	case err != nil:
		return "", fmt.Errorf("try to apply %s: %w", name, err)
	case live == nil:
		return name, nil
	}
	for _, u := range []*unstructured.Unstructured{live, applied} {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		unstructured.RemoveNestedField(u.Object, "status") // a controller may have written it in between
	}
	if apiequality.Semantic.DeepEqual(live.Object, applied.Object) {
		return "", nil
	}
	return name, nil
}

// Restore makes objects what they were. One that cannot be restored does not keep others from it.
func Restore(ctx context.Context, c client.Client, previous []Previous) error {
	var errs []error
	for _, p := range previous {
		if !p.Missing {
			errs = append(errs, kube.Apply(ctx, c, release.FieldOwner, p.Object))
			continue
		}
		if err := c.Delete(ctx, p.Object.DeepCopy()); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete %s %q, which the upgrade has created: %w", p.Object.GetKind(), client.ObjectKeyFromObject(p.Object), err))
		}
	}
	return errors.Join(errs...)
}

// Keep adds objects as they are now to those before, for a trial that replaces another one: what only the other one has did not exist before both, and
// what both have is already recorded.
func (t *Trial) Keep(current []Previous) {
	recorded := map[string]bool{}
	for _, p := range t.Previous {
		recorded[p.Object.GetKind()+" "+client.ObjectKeyFromObject(p.Object).String()] = true
	}
	for _, p := range current {
		if !recorded[p.Object.GetKind()+" "+client.ObjectKeyFromObject(p.Object).String()] {
			t.Previous = append(t.Previous, p)
		}
	}
}

// Of returns those of the objects before that are among the objects of a chart, and the others.
func Of(previous []Previous, objects []client.Object, scheme *runtime.Scheme) (of, others []Previous, err error) {
	type identity struct {
		schema.GroupKind
		client.ObjectKey
	}
	has := map[identity]bool{}
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, nil, err
		}
		has[identity{gvk.GroupKind(), client.ObjectKeyFromObject(object)}] = true
	}
	for _, p := range previous {
		if has[identity{p.Object.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(p.Object)}] {
			of = append(of, p)
		} else {
			others = append(others, p)
		}
	}
	return of, others, nil
}

// read returns an object as it is now, or nil if it does not exist.
func read(ctx context.Context, reader client.Reader, scheme *runtime.Scheme, object client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)
	if err := reader.Get(ctx, client.ObjectKeyFromObject(object), live); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // documented
	} else if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	return live, nil
}
