package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Await watches the objects of one kind until check returns nil. It checks once when the objects are listed, and after
// every change. Each error of check is passed to report, unless that is nil. If ctx is done first, the last of these errors is
// returned. The list determines the kind, and the options limit what is watched.
func Await[T client.Object](ctx context.Context, c client.WithWatch, list client.ObjectList, check func([]T) error, report func(error), options ...client.ListOption) error {
	kind := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(client.Object) //nolint:forcetypeassert // T is a pointer to a kind
	return AwaitKind(ctx, c, kind, list, func(objects []client.Object) error {
		typed := make([]T, 0, len(objects))
		for _, object := range objects {
			typed = append(typed, object.(T)) //nolint:forcetypeassert // the informer holds nothing else
		}
		return check(typed)
	}, report, options...)
}

// AwaitKind is Await for a kind that is only known at run time; the object determines it.
func AwaitKind(
	ctx context.Context, c client.WithWatch, kind client.Object, list client.ObjectList, check func([]client.Object) error, report func(error),
	options ...client.ListOption,
) error {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // A check that has yet to start will see this change too.
		}
	}
	var listed atomic.Pointer[error]
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			fresh := list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
			err := c.List(ctx, fresh, append(options, &client.ListOptions{Raw: &raw})...)
			listed.Store(&err)
			return fresh, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list, append(options, &client.ListOptions{Raw: &raw})...)
		},
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: listWatch,
		ObjectType:    kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		},
	})
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	// The informer logs with the caller's logger, which may not be used any more after the caller has ended.
	defer running.Wait()
	defer cancel()
	select {
	case <-informer.HasSyncedChecker().Done():
	case <-ctx.Done():
		var last error
		if err := listed.Load(); err != nil {
			last = *err
		}
		return fmt.Errorf("list %T: %w", list, errors.Join(last, context.Cause(ctx)))
	}
	for {
		objects := make([]client.Object, 0)
		for _, object := range store.List() {
			objects = append(objects, object.(client.Object)) //nolint:forcetypeassert // the informer holds nothing else
		}
		reason := check(objects)
		if reason == nil {
			return nil
		}
		if report != nil {
			report(reason)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", reason, context.Cause(ctx))
		}
	}
}
