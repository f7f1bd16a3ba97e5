package managedresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
)

// secretsIndex indexes ManagedResources by the Secrets that they refer to.
const secretsIndex = "spec.secretRefs.name"

// NewCache returns a cache of the managed objects in a cluster, for all controllers that read them. Namespaces restrict it, if there are any.
func NewCache(targetCluster cluster.Cluster, managedBy string, namespaces []string) (cache.Cache, error) {
	managed, err := labels.Parse(resourcesv1alpha1.ManagedBy + "=" + managedBy)
	if err != nil {
		return nil, fmt.Errorf("label value %q: %w", managedBy, err)
	}
	options := cache.Options{
		Scheme: targetCluster.GetScheme(), Mapper: targetCluster.GetRESTMapper(), HTTPClient: targetCluster.GetHTTPClient(),
		DefaultLabelSelector: managed, DefaultTransform: cache.TransformStripManagedFields(),
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return cache.New(targetCluster.GetConfig(), options)
}

// Add adds the controller to a manager of the source cluster. The target may be the same cluster. Only metadata is watched in the cache of
// managed objects: that is enough to detect changes, and takes little memory in clusters with many objects.
func Add(ctx context.Context, mgr manager.Manager, targetCluster cluster.Cluster, managed cache.Cache, v Values) error {
	live, err := client.New(targetCluster.GetConfig(), client.Options{Scheme: targetCluster.GetScheme(), Mapper: targetCluster.GetRESTMapper(), HTTPClient: targetCluster.GetHTTPClient()})
	if err != nil {
		return err
	}
	r := &reconciler{
		Values: v, source: mgr.GetClient(), secrets: mgr.GetAPIReader(), clock: clock.RealClock{},
		target: &target{live: live, seen: managed, clock: clock.RealClock{}, always: v.AlwaysUpdate, applied: map[objectKey]record{}},
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &resourcesv1alpha1.ManagedResource{}, secretsIndex, func(obj client.Object) []string {
		var names []string
		for _, ref := range obj.(*resourcesv1alpha1.ManagedResource).Spec.SecretRefs {
			names = append(names, ref.Name)
		}
		return names
	}); err != nil {
		return err
	}
	c, err := controller.New("managedresource", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: v.Concurrency,
		RateLimiter: Retries(),
	})
	if err != nil {
		return err
	}
	r.watches = &watches{controller: c, cache: managed, mapper: live.RESTMapper(), origin: v.ClusterID, kinds: map[schema.GroupVersionKind]bool{}}
	return errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &resourcesv1alpha1.ManagedResource{}, &handler.TypedEnqueueRequestForObject[*resourcesv1alpha1.ManagedResource]{}, r.concerns())),
		// Only metadata is watched; the data is read when it is needed.
		c.Watch(source.Kind[client.Object](mgr.GetCache(), kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret")), handler.EnqueueRequestsFromMapFunc(r.usersOf))),
	)
}

// Retries is the backoff after failed reconciliations of a ManagedResource.
func Retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
}

// concerns passes ManagedResources that have or had the class of this process, but not status updates, which the process writes itself.
func (r *reconciler) concerns() predicate.TypedPredicate[*resourcesv1alpha1.ManagedResource] {
	return predicate.TypedFuncs[*resourcesv1alpha1.ManagedResource]{
		CreateFunc: func(e event.TypedCreateEvent[*resourcesv1alpha1.ManagedResource]) bool { return r.handles(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*resourcesv1alpha1.ManagedResource]) bool {
			return r.handles(e.ObjectNew) && (e.ObjectOld.Generation != e.ObjectNew.Generation ||
				e.ObjectOld.Annotations[resourcesv1alpha1.Ignore] != e.ObjectNew.Annotations[resourcesv1alpha1.Ignore] ||
				!slices.Equal(e.ObjectOld.Finalizers, e.ObjectNew.Finalizers) || e.ObjectNew.DeletionTimestamp != nil && e.ObjectOld.DeletionTimestamp == nil)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*resourcesv1alpha1.ManagedResource]) bool { return false },
	}
}

func (r *reconciler) handles(mr *resourcesv1alpha1.ManagedResource) bool {
	return r.responsible(mr) || slices.Contains(mr.Finalizers, r.finalizer())
}

// usersOf are the ManagedResources that refer to a Secret.
func (r *reconciler) usersOf(ctx context.Context, secret client.Object) []reconcile.Request {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := r.source.List(ctx, list, client.InNamespace(secret.GetNamespace()), client.MatchingFields{secretsIndex: secret.GetName()}); err != nil {
		return nil // only until the cache has synced; all objects are enqueued then
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if r.handles(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// watches are the watches of applied kinds, one per kind.
type watches struct {
	controller controller.Controller
	cache      cache.Cache
	mapper     meta.RESTMapper
	origin     string // the identity of the source cluster

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]bool
}

// ensure starts missing watches.
func (w *watches) ensure(kinds []schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, gvk := range kinds {
		if w.kinds[gvk] {
			continue
		}
		if err := w.controller.Watch(source.Kind[client.Object](w.cache, kube.Metadata(gvk), handler.EnqueueRequestsFromMapFunc(w.owner), metadataChanged())); err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", gvk.Kind, err))
			continue
		}
		w.kinds[gvk] = true
	}
	return errors.Join(errs...)
}

// ensureReferenced starts watches for the objects in a status. Kinds that the cluster does not have any more are skipped: they have no
// objects, and their watch would never sync.
func (w *watches) ensureReferenced(refs []resourcesv1alpha1.ObjectReference) error {
	var kinds []schema.GroupVersionKind
	for _, ref := range refs {
		gvk := ref.GroupVersionKind()
		if slices.Contains(kinds, gvk) {
			continue
		}
		switch _, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); {
		case err == nil:
			kinds = append(kinds, gvk)
		case !meta.IsNoMatchError(err):
			return failed{fmt.Errorf("get REST mapping of kind %s: %w", gvk.Kind, err)}
		}
	}
	return w.ensure(kinds)
}

// owner is the ManagedResource in the origin annotation of an object.
func (w *watches) owner(_ context.Context, object client.Object) []reconcile.Request {
	return Owner(w.origin, object)
}

// Owner returns the ManagedResource in the origin annotation of an object, if it is in the source cluster with this identity.
func Owner(clusterID string, object client.Object) []reconcile.Request {
	origin := object.GetAnnotations()[resourcesv1alpha1.OriginAnnotation]
	if clusterID != "" {
		var ok bool
		if origin, ok = strings.CutPrefix(origin, clusterID+":"); !ok {
			return nil
		}
	}
	namespace, name, ok := strings.Cut(origin, "/")
	if !ok || strings.Contains(namespace, ":") {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// metadataChanged ignores updates of the status, which are frequent. They do not change the generation of kinds that have one.
func metadataChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // the reconciliation that created it handles it
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetGeneration() == 0 && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || // it was recreated while the watch was interrupted
				!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
	}
}
