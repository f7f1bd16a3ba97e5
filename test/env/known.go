package env

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AwaitKnown waits until a cache has objects in the version at hand or a later one. That a server has taken a change does not mean
// that controllers see it. The objects have to be of kinds that are watched already.
func AwaitKnown(t testing.TB, cache client.Reader, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		known := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
		err := wait.PollUntilContextTimeout(t.Context(), lookAgain, startTimeout, true, func(ctx context.Context) (bool, error) {
			if err := cache.Get(ctx, client.ObjectKeyFromObject(obj), known); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			newer, err := resourceversion.CompareResourceVersion(known.GetResourceVersion(), obj.GetResourceVersion())
			return newer >= 0, err
		})
		if err != nil {
			t.Fatalf("the cache has no %T %s of version %s: %v", obj, client.ObjectKeyFromObject(obj), obj.GetResourceVersion(), err)
		}
	}
}

// AwaitUnknown waits until objects are deleted, and a cache does not have them any more.
func AwaitUnknown(t testing.TB, cache client.Reader, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		known := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
		AwaitRequest(t, func(ctx context.Context) error {
			if err := cache.Get(ctx, client.ObjectKeyFromObject(obj), known); err != nil {
				return client.IgnoreNotFound(err)
			}
			return fmt.Errorf("the cache has %T %s still, with finalizers %v", obj, client.ObjectKeyFromObject(obj), known.GetFinalizers())
		})
	}
}
