// Package behind tests what controllers write to a status while their cache is behind.
package behind

import (
	"context"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Case is a controller that has just written another status than the present one, which its cache does not have yet.
type Case[T client.Object] struct {
	// API is a fake API server with the object.
	API client.WithWatch
	// Object has at least a name.
	Object T
	// Status returns what is compared, without times.
	Status func(T) any
	// Other changes the status to one that the controller would not write now.
	Other func(T)
	// Changed is the predicate of the controller. Nil if it reads the object from the API server, so that one pass is enough.
	Changed predicate.Predicate
	// Pass reconciles the object with a cache.
	Pass func(cache client.WithWatch)
}

// Run fails if the other status stays, or if the controller goes on writing.
func (c Case[T]) Run(t *testing.T) {
	t.Helper()
	c.Pass(c.API)
	before := c.read(t)
	other := before.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has its original's type
	c.Other(other)
	if err := c.API.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(c.Status(before), c.Status(c.read(t))) {
		t.Fatalf("the other status is the same: %v", c.Status(before))
	}
	c.Pass(cache(c.API, before))
	if c.Changed != nil && c.Changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: other}) {
		c.Pass(c.API)
	}
	after := c.read(t)
	if diff := cmp.Diff(c.Status(before), c.Status(after)); diff != "" {
		t.Errorf("the status stays as a cache that was behind left it (-want +got):\n%s", diff)
	}
	c.Pass(c.API)
	if again := c.read(t); again.GetResourceVersion() != after.GetResourceVersion() {
		t.Errorf("a pass that changes nothing writes (-before +after):\n%s", cmp.Diff(after, again))
	}
}

func (c Case[T]) read(t *testing.T) T {
	t.Helper()
	object := c.Object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has its original's type
	if err := c.API.Get(t.Context(), client.ObjectKeyFromObject(c.Object), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// cache returns a client that reads one object as it was, and writes to the API server.
func cache(api client.WithWatch, was client.Object) client.WithWatch {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if reflect.TypeOf(object) != reflect.TypeOf(was) || key != client.ObjectKeyFromObject(was) {
				return api.Get(ctx, key, object, options...)
			}
			reflect.ValueOf(object).Elem().Set(reflect.ValueOf(was.DeepCopyObject()).Elem())
			return nil
		},
	})
}
