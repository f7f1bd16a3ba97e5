package env

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/kube"
)

const (
	// awaitTimeout is how long a test waits for a change. It takes well below a second on an idle machine.
	awaitTimeout = 90 * time.Second
	// reportTime is what is left of the time of all tests when a wait ends, for its report and for cleaning up.
	reportTime = 5 * time.Second
	// shown is how many objects the report of a timeout has at most.
	shown = 5
)

// Await watches an object until check returns nil, and returns the object. While it does not exist, check is not called. The kind, namespace and
// name of obj determine what is watched. After a timeout, the test fails with the last error of check and the object as it was then.
func Await[T client.Object](t testing.TB, c client.WithWatch, obj T, check func(T) error) T {
	t.Helper()
	ctx, cancel := limited(t)
	defer cancel()
	var found T
	await(ctx, t, c, obj, func(objects []T) error {
		if len(objects) == 0 {
			return fmt.Errorf("%T %s does not exist", obj, client.ObjectKeyFromObject(obj))
		}
		found = objects[0]
		return check(found)
	}, only(obj)...)
	return found
}

// AwaitGone watches an object until it does not exist. The kind, namespace and name of obj determine what is watched.
func AwaitGone[T client.Object](t testing.TB, c client.WithWatch, obj T) {
	t.Helper()
	ctx, cancel := limited(t)
	defer cancel()
	await(ctx, t, c, obj, None[T], only(obj)...)
}

// AwaitList is Await for all objects of a kind that the options select.
func AwaitList[T client.Object](t testing.TB, c client.WithWatch, check func([]T) error, options ...client.ListOption) {
	t.Helper()
	ctx, cancel := limited(t)
	defer cancel()
	await(ctx, t, c, empty[T](), check, options...)
}

// AwaitListUntil is AwaitList that times out when ctx is done, for what takes longer.
func AwaitListUntil[T client.Object](ctx context.Context, t testing.TB, c client.WithWatch, check func([]T) error, options ...client.ListOption) {
	t.Helper()
	await(ctx, t, c, empty[T](), check, options...)
}

// AwaitRequest repeats a request until it returns nil. It is for what cannot be watched: when an API server has observed permissions and registrations of
// webhooks. After a timeout, the test fails with the last error of the request.
func AwaitRequest(t testing.TB, request func(context.Context) error) {
	t.Helper()
	ctx, cancel := limited(t)
	defer cancel()
	var reason error
	for {
		err := request(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || reason == nil { // else it may say no more than that the time is over
			reason = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%v: %v", context.Cause(ctx), reason)
			return
		case <-time.After(lookAgain):
		}
	}
}

// None is a check of AwaitList: no object may be left.
func None[T client.Object](objects []T) error {
	if len(objects) == 0 {
		return nil
	}
	first := objects[0]
	return fmt.Errorf("%T %s still exists, with finalizers %v", first, client.ObjectKeyFromObject(first), first.GetFinalizers())
}

// AwaitServed waits until a kind is served and in discovery, which may be a moment behind the conditions of its definition.
func AwaitServed[T client.Object](t testing.TB, c client.WithWatch) {
	t.Helper()
	AwaitList(t, c, func([]T) error { return nil })
}

// Exists is a check of Await: any object will do.
func Exists[T client.Object](T) error { return nil }

// Named returns an object with nothing but a name, and a namespace unless that is empty: it is what Await waits for.
func Named[T client.Object](namespace, name string) T {
	obj := empty[T]()
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func empty[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:forcetypeassert // T is a pointer to a kind
}

func only(obj client.Object) []client.ListOption {
	return []client.ListOption{client.InNamespace(obj.GetNamespace()), client.MatchingFields{"metadata.name": obj.GetName()}}
}

// limited is the context of the test with the timeout of a wait.
func limited(t testing.TB) (context.Context, context.CancelFunc) {
	timeout := awaitTimeout
	if test, ok := t.(interface{ Deadline() (time.Time, bool) }); ok { // a benchmark has none
		if end, ok := test.Deadline(); ok {
			timeout = min(timeout, time.Until(end)-reportTime)
		}
	}
	return context.WithTimeoutCause(t.Context(), timeout, fmt.Errorf("timed out after %s", timeout.Round(time.Millisecond)))
}

func await[T client.Object](ctx context.Context, t testing.TB, c client.WithWatch, kind T, check func([]T) error, options ...client.ListOption) {
	t.Helper()
	list, err := listOf(c, kind)
	if err != nil {
		t.Fatal(err)
	}
	var last []T
	var reason error
	err = kube.Await(ctx, c, list, func(objects []T) error {
		last, reason = objects, check(objects)
		return reason
	}, nil, options...)
	switch {
	case err == nil:
	case reason == nil: // nothing was ever listed
		t.Fatal(err)
	default:
		t.Fatalf("%v: %v\nlast seen:%s", context.Cause(ctx), reason, describe(last))
	}
}

// listOf returns an empty list of the kind of an object.
func listOf(c client.Client, obj client.Object) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
	list, err := c.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil //nolint:forcetypeassert // kinds that end in List are lists
}

// describe returns objects as YAML, without the values of secrets.
func describe[T client.Object](objects []T) string {
	if len(objects) == 0 {
		return " no object"
	}
	var text strings.Builder
	for i, object := range objects {
		if i == shown {
			fmt.Fprintf(&text, "\n--- and %d more", len(objects)-shown)
			break
		}
		copied := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
		copied.SetManagedFields(nil)
		if secret, ok := copied.(*corev1.Secret); ok {
			for key, value := range secret.Data {
				secret.Data[key] = fmt.Appendf(nil, "%d bytes", len(value))
			}
		}
		out, err := yaml.Marshal(copied)
		if err != nil {
			out = []byte(err.Error())
		}
		fmt.Fprintf(&text, "\n--- %T\n%s", object, bytes.TrimSpace(out))
	}
	return text.String()
}
