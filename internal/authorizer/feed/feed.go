// Package feed fills the graph of the authorizers from informers.
package feed

import (
	"context"
	"fmt"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/authorizer/graph"
)

// Operations on the graph, as its metrics name them.
const (
	createOrUpdate = "CreateOrUpdate"
	remove         = "Delete"
)

// Observe gets how long a change of the graph took.
type Observe func(kind graph.Kind, operation string, took time.Duration)

// Feed is what fills a graph.
type Feed struct {
	registrations []toolscache.ResourceEventHandlerRegistration
}

// Start adds handlers for kinds of graph.Watched to informers, which start later. observe may be nil.
func Start(ctx context.Context, informers cache.Informers, g *graph.Graph, kinds []client.Object, observe Observe) (*Feed, error) {
	if observe == nil {
		observe = func(graph.Kind, string, time.Duration) {}
	}
	f := &Feed{}
	for _, obj := range kinds {
		informer, err := informers.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("get informer for %T: %w", obj, err)
		}
		registration, err := informer.AddEventHandler(handler{g, graph.Of(obj).Key.Kind, observe})
		if err != nil {
			return nil, fmt.Errorf("add handler for %T: %w", obj, err)
		}
		f.registrations = append(f.registrations, registration)
	}
	return f, nil
}

// HasSynced reports whether the graph has all objects that existed when the informers started. That informers have synced is not enough:
// handlers come later.
func (f *Feed) HasSynced() bool {
	for _, r := range f.registrations {
		if !r.HasSynced() {
			return false
		}
	}
	return true
}

// handler passes events of one kind on to the graph.
type handler struct {
	graph   *graph.Graph
	kind    graph.Kind
	observe Observe
}

// OnAdd implements ResourceEventHandler.
func (h handler) OnAdd(obj any, _ bool) { h.set(obj) }

// OnUpdate implements ResourceEventHandler.
func (h handler) OnUpdate(_, obj any) { h.set(obj) }

func (h handler) set(obj any) {
	// Informers have no other types. What depends on the object only is computed before the graph is locked.
	object := graph.Of(obj.(client.Object))
	start := time.Now()
	h.graph.Set(object)
	h.observe(h.kind, createOrUpdate, time.Since(start))
}

// OnDelete implements ResourceEventHandler. After a lost connection, the object may be a tombstone.
func (h handler) OnDelete(obj any) {
	name, err := toolscache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return // neither an object nor a tombstone
	}
	start := time.Now()
	h.graph.Delete(graph.Key{Kind: h.kind, Namespace: name.Namespace, Name: name.Name})
	h.observe(h.kind, remove, time.Since(start))
}
