package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestAwaitSaysWhyItCannotList is about a kind that cannot be listed, which is retried.
func TestAwaitSaysWhyItCannotList(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	forbidden, late := errors.New("forbidden"), errors.New("too late")
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			cancel(late)
			return forbidden
		},
	}).Build()
	err := Await(ctx, c, &corev1.PodList{}, func([]*corev1.Pod) error { return nil }, nil)
	if !errors.Is(err, late) || !strings.Contains(err.Error(), forbidden.Error()) {
		t.Errorf("got %v, want one with %q and %q", err, forbidden, late)
	}
}

// A program that responds for the API server of a shoot must not fill the memory of the gardenlet by a list without an end.
func TestAwaitReadsNoEndlessList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lists := 0
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if o := (&client.ListOptions{}).ApplyOptions(opts); o.Raw.Limit != 0 || o.Raw.Continue != "" {
					t.Errorf("list %d is requested in pages: %+v", lists, o.Raw)
				}
				if lists++; lists == 2 {
					cancel()
				}
				list.SetContinue("more")
				return nil
			},
			Watch: watchesWithoutList(watch.NewEmptyWatch),
		}).Build()
		err := Await(ctx, c, &corev1.PodList{}, func([]*corev1.Pod) error { return nil }, nil)
		if !errors.Is(err, errPages) {
			t.Errorf("got %v, want %q", err, errPages)
		}
	})
}

// What watches bring one after the other would be kept, too. Objects of which a watch did not report the deletion are gone after it.
func TestAwaitListsAfterEachWatch(t *testing.T) {
	var requests []string
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				requests = append(requests, "list")
				list.SetResourceVersion("1")
				return nil
			},
			Watch: watchesWithoutList(func() watch.Interface {
				requests = append(requests, "watch")
				w := watch.NewFakeWithChanSize(1, false)
				w.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", len(requests)), ResourceVersion: "2"}})
				w.Stop()
				return w
			}),
		}).Build()
		err := Await(t.Context(), c, &corev1.PodList{}, func(pods []*corev1.Pod) error {
			if len(pods) > 1 || len(pods) == 1 && pods[0].Name == "p4" {
				return nil
			}
			return fmt.Errorf("%d pods", len(pods))
		}, nil)
		if err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff([]string{"list", "watch", "list", "watch"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// watchesWithoutList are those of a server that does not send lists in watches.
func watchesWithoutList(next func() watch.Interface) func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return func(_ context.Context, _ client.WithWatch, _ client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
		if raw := (&client.ListOptions{}).ApplyOptions(opts).Raw; raw.SendInitialEvents != nil {
			return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
		}
		return next(), nil
	}
}
