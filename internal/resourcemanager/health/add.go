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

// Add adds the controller to a manager of the source cluster. The target may be the same cluster; the cache has the managed objects there.
func Add(mgr manager.Manager, targetCluster cluster.Cluster, managed cache.Cache, v Values) error {
	live, err := client.NewWithWatch(targetCluster.GetConfig(), client.Options{
		Scheme: targetCluster.GetScheme(), Mapper: targetCluster.GetRESTMapper(), HTTPClient: targetCluster.GetHTTPClient(),
	})
	if err != nil {
		return err
	}
	r := &reconciler{Values: v, source: mgr.GetClient(), clock: clock.RealClock{}, target: &target{
		live: live, seen: managed, generations: map[key]generation{},
	}, pods: newOldPods(live)}
	c, err := controller.New("health", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: v.Concurrency, RateLimiter: managedresource.Retries(),
	})
	if err != nil {
		return err
	}
	r.target.watch = func(object client.Object) error {
		return c.Watch(source.Kind(managed, object, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			return managedresource.Owner(v.ClusterID, object)
		}), changed(object)))
	}
	return errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &resourcesv1alpha1.ManagedResource{}, &handler.TypedEnqueueRequestForObject[*resourcesv1alpha1.ManagedResource]{}, r.concerns())),
		c.Watch(kube.Background(mgr, r.pods.run)),
	)
}

// concerns passes ManagedResources of this process, also after changes of their status, which lists the objects to check. A status write of
// this controller causes another check, which only reads caches.
func (r *reconciler) concerns() predicate.TypedPredicate[*resourcesv1alpha1.ManagedResource] {
	handled := func(mr *resourcesv1alpha1.ManagedResource) bool { return managedresource.Responsible(r.Class, mr) }
	return predicate.TypedFuncs[*resourcesv1alpha1.ManagedResource]{
		CreateFunc: func(e event.TypedCreateEvent[*resourcesv1alpha1.ManagedResource]) bool { return handled(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*resourcesv1alpha1.ManagedResource]) bool {
			return handled(e.ObjectNew) && (!apiequality.Semantic.DeepEqual(e.ObjectOld.Status, e.ObjectNew.Status) ||
				e.ObjectOld.Annotations[resourcesv1alpha1.Ignore] != e.ObjectNew.Annotations[resourcesv1alpha1.Ignore])
		},
		DeleteFunc: func(event.TypedDeleteEvent[*resourcesv1alpha1.ManagedResource]) bool { return false },
	}
}

// changed ignores updates of objects that have no health: for these, only creation and deletion matter.
func changed(object client.Object) predicate.Predicate {
	_, metadataOnly := object.(*metav1.PartialObjectMetadata)
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !metadataOnly && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}}
}

// key identifies an object in the target cluster.
type key struct {
	schema.GroupVersionKind
	client.ObjectKey
}

// generation is the newest generation of an object that was seen.
type generation struct {
	uid    string
	number int64
}

// target reads the objects of the target cluster.
type target struct {
	// live reads from the API server.
	live client.WithWatch
	// seen is the cache of managed objects: complete ones if they have health, otherwise metadata.
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

// ensureWatch starts a watch of a kind, if the cluster has it.
func (t *target) ensureWatch(gvk schema.GroupVersionKind) error {
	if _, err := t.live.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		if meta.IsNoMatchError(err) {
			return nil // then the check reports that the object does not exist
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

// pass is shared by the checks of one reconciliation.
type pass struct {
	// fresh says that all objects are read from the API server.
	fresh bool
	// unseen are the kinds whose watch has not synced in time. The check of their other objects does not wait for it.
	unseen map[schema.GroupVersionKind]bool
}

// get returns an object, or nil if it does not exist. If the cache has an older one than this process has applied or seen before, the
// object is read from the API server, as an old status would be about an old rollout.
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
		return nil, nil // it does not exist
	}
	if err != nil {
		return nil, err
	}
	t.newEnough(k, object)
	return object, nil
}

// newEnough says whether an object is not older than one that was seen before, and records it.
func (t *target) newEnough(k key, object client.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, before := generation{string(object.GetUID()), object.GetGeneration()}, t.generations[k]
	if before.uid != "" && (now.uid != before.uid || now.number < before.number) {
		// The object may have been recreated since: a read from the API server shows that.
		t.generations[k] = generation{}
		return false
	}
	t.generations[k] = now
	return true
}
