package health

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/resourcemanager/managedresource"
)

// Add adds the controller to a manager of the source cluster. The target may be the same cluster; the cache has what is managed there.
func Add(mgr manager.Manager, targetCluster cluster.Cluster, managed cache.Cache, s Settings) error {
	live, err := client.NewWithWatch(targetCluster.GetConfig(), client.Options{
		Scheme: targetCluster.GetScheme(), Mapper: targetCluster.GetRESTMapper(), HTTPClient: targetCluster.GetHTTPClient(),
	})
	if err != nil {
		return err
	}
	r := &Reconciler{Settings: s, source: mgr.GetClient(), clock: clock.RealClock{}, target: &target{
		live: live, seen: managed, generations: map[key]generation{},
	}, pods: newOldPods(live)}
	c, err := controller.New("health", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: s.Concurrency, RateLimiter: managedresource.Retries(),
	})
	if err != nil {
		return err
	}
	r.target.watch = func(object client.Object) error {
		return c.Watch(source.Kind(managed, object, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			return managedresource.Owner(s.ClusterID, object)
		}), changed(object)))
	}
	return errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &resourcesv1alpha1.ManagedResource{}, &handler.TypedEnqueueRequestForObject[*resourcesv1alpha1.ManagedResource]{}, r.concerns())),
		c.Watch(source.Func(r.pods.start)),
	)
}

// concerns lets through ManagedResources of this process. Their status tells what there is to check; that it changes also when this
// controller writes it costs a look at the caches.
func (r *Reconciler) concerns() predicate.TypedPredicate[*resourcesv1alpha1.ManagedResource] {
	ours := func(mr *resourcesv1alpha1.ManagedResource) bool { return managedresource.Responsible(r.Class, mr) }
	return predicate.TypedFuncs[*resourcesv1alpha1.ManagedResource]{
		CreateFunc: func(e event.TypedCreateEvent[*resourcesv1alpha1.ManagedResource]) bool { return ours(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*resourcesv1alpha1.ManagedResource]) bool {
			return ours(e.ObjectNew) && (!apiequality.Semantic.DeepEqual(e.ObjectOld.Status, e.ObjectNew.Status) ||
				e.ObjectOld.Annotations[resourcesv1alpha1.Ignore] != e.ObjectNew.Annotations[resourcesv1alpha1.Ignore])
		},
		DeleteFunc: func(event.TypedDeleteEvent[*resourcesv1alpha1.ManagedResource]) bool { return false },
	}
}

// changed leaves out changes of objects that have no health: that they come and go is enough.
func changed(object client.Object) predicate.Predicate {
	_, metadataOnly := object.(*metav1.PartialObjectMetadata)
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !metadataOnly && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}}
}

// key names an object in the target cluster.
type key struct {
	schema.GroupVersionKind
	client.ObjectKey
}

// generation is the newest one that was seen of an object.
type generation struct {
	uid    string
	number int64
}

// target reads the objects of the target cluster.
type target struct {
	// live asks the API server.
	live client.WithWatch
	// seen has what is managed, in full if it has health, else its metadata.
	seen client.Reader
	// watch starts a watch.
	watch func(client.Object) error

	mu          sync.Mutex
	watched     map[schema.GroupVersionKind]bool
	generations map[key]generation
}

// objectOf returns an empty object of a kind in the form in which it is watched.
func (t *target) objectOf(gvk schema.GroupVersionKind) client.Object {
	if kube.HasHealth(gvk.GroupKind()) {
		if typed, err := t.live.Scheme().New(gvk); err == nil {
			if object, ok := typed.(client.Object); ok {
				return object
			}
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		return object
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	return object
}

// ensureWatch watches a kind from now on, if the cluster has it.
func (t *target) ensureWatch(gvk schema.GroupVersionKind) error {
	if _, err := t.live.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		if meta.IsNoMatchError(err) {
			return nil // then there is no such object, which is what the check says
		}
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[gvk] {
		return nil
	}
	if err := t.watch(t.objectOf(gvk)); err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	if t.watched == nil {
		t.watched = map[schema.GroupVersionKind]bool{}
	}
	t.watched[gvk] = true
	return nil
}

// pass is what the checks of one pass share.
type pass struct {
	// fresh says that the API server is asked for all objects.
	fresh bool
	// unseen are the kinds whose watch has not begun in time. It is not waited for with each of their objects.
	unseen map[schema.GroupVersionKind]bool
}

// get returns an object, or nil if it does not exist. What the cache has may be older than what this process has applied or seen
// already: then the API server is asked, as an old status would tell of an old roll-out.
func (t *target) get(ctx context.Context, k key, p *pass) (client.Object, error) {
	object := t.objectOf(k.GroupVersionKind)
	if !p.fresh && !p.unseen[k.GroupVersionKind] {
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		if err := t.seen.Get(ctx, k.ObjectKey, object); err == nil && t.newEnough(k, object) {
			return object, nil
		}
		p.unseen[k.GroupVersionKind] = ctx.Err() != nil
		object = t.objectOf(k.GroupVersionKind)
	}
	err := t.live.Get(ctx, k.ObjectKey, object)
	if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil && err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.generations, k)
		return nil, nil // not there is an answer
	}
	if err != nil {
		return nil, err
	}
	t.newEnough(k, object)
	return object, nil
}

// newEnough tells whether an object is not older than what was seen before, and remembers it.
func (t *target) newEnough(k key, object client.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, before := generation{string(object.GetUID()), object.GetGeneration()}, t.generations[k]
	if before.uid != "" && (now.uid != before.uid || now.number < before.number) {
		// It may be that the object was deleted and created again since: one request tells.
		t.generations[k] = generation{}
		return false
	}
	t.generations[k] = now
	return true
}
