// Package watch turns events about objects into work for controllers that reconcile what these objects use.
package watch

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Mapped enqueues what an object maps to when it comes or goes. When it changes, only what it did not map to before, or does not any
// more, is enqueued: most changes are none for what it uses.
func Mapped[request comparable](of func(client.Object) []request) handler.TypedEventHandler[client.Object, request] {
	add := func(queue workqueue.TypedRateLimitingInterface[request], requests []request) {
		for _, r := range requests {
			queue.Add(r)
		}
	}
	return handler.TypedFuncs[client.Object, request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], queue workqueue.TypedRateLimitingInterface[request]) {
			add(queue, of(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], queue workqueue.TypedRateLimitingInterface[request]) {
			before, after := of(e.ObjectOld), of(e.ObjectNew)
			add(queue, without(before, after))
			add(queue, without(after, before))
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], queue workqueue.TypedRateLimitingInterface[request]) {
			add(queue, of(e.Object))
		},
	}
}

func without[T comparable](list, others []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return slices.Contains(others, t) })
}

// Every enqueues what an object maps to at each event.
func Every[request comparable](of func(client.Object) []request) handler.TypedEventHandler[client.Object, request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []request { return of(obj) })
}
