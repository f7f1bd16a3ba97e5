// Package watch has the event handlers and predicates that several controllers share.
package watch

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/internal/controllermanager/references"
)

// Mapped enqueues the requests that an object maps to when it is created or deleted. When it is updated, only those are enqueued that
// it maps to either before or after the update, but not both: most updates do not change what an object refers to.
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

// Every enqueues the requests that an object maps to at each event.
func Every[request comparable](of func(client.Object) []request) handler.TypedEventHandler[client.Object, request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []request { return of(obj) })
}

// References enqueues, at each event of an object, the objects of the given kinds that it refers to.
func References(kinds ...string) handler.EventHandler {
	return Every(func(obj client.Object) []reconcile.Request { return references.Requests(obj, kinds...) })
}

// ChangedReferences enqueues the objects of the given kinds that an object refers to, as Mapped does.
func ChangedReferences(kinds ...string) handler.EventHandler {
	return Mapped(func(obj client.Object) []reconcile.Request { return references.Requests(obj, kinds...) })
}

// Referrers enqueues, at each event of an object, the objects that refer to it. The kind of the object is given by its name, that of the
// objects that refer to it as an empty object.
func Referrers(gardenCache client.Client, to string, referrer client.Object) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		ref := references.RefOf(to, obj)
		keys, err := references.Referrers(ctx, gardenCache, referrer, ref, 0)
		if err != nil {
			logf.FromContext(ctx).Error(err, "Listing the objects that refer to an object", "object", ref.String())
			return nil
		}
		var requests []reconcile.Request
		for _, key := range keys {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
		return requests
	})
}
