package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
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

// errPages is the error of a list that an API server returns in pages although it is requested as a whole.
var errPages = errors.New("the API server returns a page of a list that was requested as a whole")

// AwaitKind is Await for a kind that is only known at run time; the object determines it.
//
// Users of a shoot may have a program of theirs respond for its API server. So that what clients limit of a response is a limit of what is kept here, objects
// are those of one list and one watch: lists are not read in pages, which may have no end, and a watch that ends is not continued without a list.
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
	var mayWatch atomic.Bool
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			fresh := list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
			raw.Limit = 0
			err := c.List(ctx, fresh, append(slices.Clone(options), &client.ListOptions{Raw: &raw})...)
			if err == nil && fresh.GetContinue() != "" {
				err = errPages
			}
			listed.Store(&err)
			mayWatch.Store(err == nil)
			return fresh, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			if withList := ptr.Deref(raw.SendInitialEvents, false); !mayWatch.Swap(false) && !withList {
				return nil, apierrors.NewResourceExpired("the former watch has ended")
			}
			return c.Watch(ctx, list, append(slices.Clone(options), &client.ListOptions{Raw: &raw})...)
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
