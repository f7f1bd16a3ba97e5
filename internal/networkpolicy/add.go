package networkpolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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
)

// Values are the settings of the controller.
type Values struct {
	// NamespaceSelectors select the namespaces of Services that get policies. None means all namespaces.
	NamespaceSelectors []metav1.LabelSelector
	// IngressController identifies the pods of the ingress controller. Nil means that Ingresses are ignored.
	IngressController *IngressController
	// Concurrency is how many Services are reconciled at once.
	Concurrency int
	// FieldOwner is the field manager of the policies, usually the name of the process.
	FieldOwner string
}

// IngressController identifies the pods of the ingress controller.
type IngressController struct {
	// Namespace is their namespace.
	Namespace string
	// PodSelector matches their labels.
	PodSelector metav1.LabelSelector
}

// Field indexes.
const (
	// indexService indexes policies by their Service.
	indexService = "service"
	// indexBackend indexes Ingresses by the Services of their backends.
	indexBackend = "backend"
)

// Add adds the controller for a cluster to a manager.
func Add(ctx context.Context, mgr manager.Manager, targetCluster cluster.Cluster, v Values) error {
	r := &reconciler{client: targetCluster.GetClient(), ingressController: v.IngressController, owner: v.FieldOwner}
	for i := range v.NamespaceSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&v.NamespaceSelectors[i])
		if err != nil {
			return fmt.Errorf("namespace selector %d: %w", i, err)
		}
		r.namespaces = append(r.namespaces, selector)
	}
	if err := addIndexes(ctx, targetCluster.GetFieldIndexer(), v.IngressController != nil); err != nil {
		return err
	}
	c, err := controller.New("networkpolicy", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: cmp.Or(v.Concurrency, 1)})
	if err != nil {
		return err
	}
	informers := targetCluster.GetCache()
	errs := []error{
		c.Watch(source.Kind(informers, &corev1.Service{}, &handler.TypedEnqueueRequestForObject[*corev1.Service]{}, serviceChanged())),
		// Changed and deleted policies are written again.
		c.Watch(source.Kind(informers, &networkingv1.NetworkPolicy{}, handler.TypedEnqueueRequestsFromMapFunc(serviceOf), policyChanged())),
		// Namespaces may be selected by Services, or be those of Services.
		c.Watch(source.Kind(informers, &corev1.Namespace{}, handler.TypedEnqueueRequestsFromMapFunc(r.affected), namespaceChanged())),
	}
	if v.IngressController != nil {
		errs = append(errs, c.Watch(source.Kind(informers, &networkingv1.Ingress{}, handler.TypedEnqueueRequestsFromMapFunc(backends))))
	}
	return errors.Join(errs...)
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer, ingresses bool) error {
	err := indexer.IndexField(ctx, &networkingv1.NetworkPolicy{}, indexService, func(o client.Object) []string {
		var keys []string
		for _, request := range serviceOf(ctx, o.(*networkingv1.NetworkPolicy)) { //nolint:forcetypeassert // the index is of this kind
			keys = append(keys, request.String())
		}
		return keys
	})
	if err != nil || !ingresses {
		return err
	}
	return indexer.IndexField(ctx, &networkingv1.Ingress{}, indexBackend, func(o client.Object) []string {
		var keys []string
		for _, request := range backends(ctx, o.(*networkingv1.Ingress)) { //nolint:forcetypeassert // the index is of this kind
			keys = append(keys, request.String())
		}
		return keys
	})
}

func serviceChanged() predicate.TypedPredicate[*corev1.Service] {
	return predicate.TypedFuncs[*corev1.Service]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Service]) bool {
		return !apiequality.Semantic.DeepEqual(e.ObjectOld.Spec, e.ObjectNew.Spec) ||
			!apiequality.Semantic.DeepEqual(e.ObjectOld.Annotations, e.ObjectNew.Annotations) || e.ObjectNew.DeletionTimestamp != nil
	}}
}

func policyChanged() predicate.TypedPredicate[*networkingv1.NetworkPolicy] {
	return predicate.TypedFuncs[*networkingv1.NetworkPolicy]{
		// Policies are also enqueued at the start, as their Service may have been deleted before.
		UpdateFunc: func(e event.TypedUpdateEvent[*networkingv1.NetworkPolicy]) bool {
			return e.ObjectOld.ResourceVersion != e.ObjectNew.ResourceVersion
		},
	}
}

func namespaceChanged() predicate.TypedPredicate[*corev1.Namespace] {
	return predicate.TypedFuncs[*corev1.Namespace]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Namespace]) bool {
		return !apiequality.Semantic.DeepEqual(e.ObjectOld.Labels, e.ObjectNew.Labels) ||
			(e.ObjectOld.DeletionTimestamp == nil) != (e.ObjectNew.DeletionTimestamp == nil)
	}}
}

// serviceOf returns the Service of a policy, if it has one.
func serviceOf(_ context.Context, policy *networkingv1.NetworkPolicy) []reconcile.Request {
	namespace, name := policy.Labels[resourcesv1alpha1.NetworkingServiceNamespace], policy.Labels[resourcesv1alpha1.NetworkingServiceName]
	if namespace == "" || name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// affected are the Services whose policies may depend on a namespace: its own, and those that select namespaces.
func (r *reconciler) affected(ctx context.Context, namespace *corev1.Namespace) []reconcile.Request {
	services := &corev1.ServiceList{}
	if err := r.client.List(ctx, services); err != nil {
		return nil // only until the cache has synced; all Services are enqueued then
	}
	var requests []reconcile.Request
	for i := range services.Items {
		service := &services.Items[i]
		if service.Annotations[resourcesv1alpha1.NetworkingNamespaceSelectors] != "" || service.Namespace == namespace.Name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(service)})
		}
	}
	return requests
}

// backends are the Services of an Ingress.
func backends(_ context.Context, ingress *networkingv1.Ingress) []reconcile.Request {
	var requests []reconcile.Request
	for _, backend := range backendsOf(ingress) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ingress.Namespace, Name: backend.Name}})
	}
	return requests
}

func backendsOf(ingress *networkingv1.Ingress) []networkingv1.IngressServiceBackend {
	var found []networkingv1.IngressServiceBackend
	if backend := ingress.Spec.DefaultBackend; backend != nil && backend.Service != nil {
		found = append(found, *backend.Service)
	}
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			if path.Backend.Service != nil {
				found = append(found, *path.Backend.Service)
			}
		}
	}
	return found
}

// matches says whether one of several selectors matches. An empty list matches everything.
func matches(selectors []labels.Selector, set map[string]string) bool {
	for _, selector := range selectors {
		if selector.Matches(labels.Set(set)) {
			return true
		}
	}
	return len(selectors) == 0
}
