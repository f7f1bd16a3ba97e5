// Package general writes the general NetworkPolicies of namespaces with components of Gardener: all traffic is denied, except for pods
// with labels for DNS, the API server of the cluster, or public, private or blocked networks.
//
// It reads namespaces and the EndpointSlices of the Service kubernetes, and writes NetworkPolicies. Source: concepts.txt, gardenlet,
// "NetworkPolicy Controller".
package general

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"gardener.cloud/gardener/internal/kube"
)

// Values are the settings of the controller.
type Values struct {
	// NamespaceSelectors select the namespaces that get the policies. One of them has to match.
	NamespaceSelectors []metav1.LabelSelector
	// Networks returns the current address ranges of the cluster.
	Networks func(context.Context) (Networks, error)
	// NetworksOf is the kind of object whose spec Networks reads, in Cache.
	NetworksOf client.Object
	// Cache is that of the cluster with these objects.
	Cache cache.Cache
	// Concurrency is how many namespaces are reconciled at once.
	Concurrency int
	// FieldOwner is the field manager of the policies, usually the name of the process.
	FieldOwner string
}

// Add adds the controller for the cluster of a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, client: mgr.GetClient()}
	for i := range v.NamespaceSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&v.NamespaceSelectors[i])
		if err != nil {
			return fmt.Errorf("namespace selector %d: %w", i, err)
		}
		r.selectors = append(r.selectors, selector)
	}
	toNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: obj.GetNamespace()}}}
	})
	return builder.ControllerManagedBy(mgr).Named("networkpolicy-general").
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(v.Concurrency, 1)}).
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		// Changed and deleted policies are written again.
		Watches(&networkingv1.NetworkPolicy{}, toNamespace, builder.WithPredicates(predicate.NewPredicateFuncs(isGeneral))).
		// The endpoints of the API server are in a policy.
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(predicate.NewPredicateFuncs(ofAPIServer))).
		WatchesRawSource(source.Kind(v.Cache, v.NetworksOf, handler.EnqueueRequestsFromMapFunc(r.all), predicate.Predicate(predicate.GenerationChangedPredicate{}))).
		Complete(r)
}

// isGeneral says whether a policy has the name of one of those that are written here.
func isGeneral(obj client.Object) bool {
	every := policies(Networks{Blocked: everywhere}, []endpoint{{cidr: everywhere[0]}})
	return slices.ContainsFunc(every, func(p *networkingv1.NetworkPolicy) bool { return p.Name == obj.GetName() })
}

// ofAPIServer says whether an EndpointSlice is that of the API server of the cluster.
func ofAPIServer(obj client.Object) bool {
	return obj.GetNamespace() == metav1.NamespaceDefault && obj.GetLabels()[discoveryv1.LabelServiceName] == "kubernetes"
}

type reconciler struct {
	Values
	client    client.Client
	selectors []labels.Selector
}

// all are the namespaces that get policies.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	namespaces := &corev1.NamespaceList{}
	if err := r.client.List(ctx, namespaces); err != nil {
		return nil // reading from the cache only fails at shutdown
	}
	var requests []reconcile.Request
	for _, namespace := range namespaces.Items {
		if r.selects(&namespace) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: namespace.Name}})
		}
	}
	return requests
}

func (r *reconciler) selects(namespace *corev1.Namespace) bool {
	return slices.ContainsFunc(r.selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(namespace.Labels)) })
}

// Reconcile writes the policies of a namespace, and deletes those that are not desired. A namespace that is not selected, or no longer, is
// ignored: policies there may belong to other components.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, req.NamespacedName, namespace); err != nil || namespace.DeletionTimestamp != nil || !r.selects(namespace) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	networks, err := r.Networks(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	endpoints, err := r.endpoints(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	want := policies(networks, endpoints)
	have := &networkingv1.NetworkPolicyList{}
	if err := r.client.List(ctx, have, client.InNamespace(namespace.Name)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list policies: %w", err)
	}
	var errs []error
	for i := range have.Items {
		policy := &have.Items[i]
		index := slices.IndexFunc(want, func(w *networkingv1.NetworkPolicy) bool { return w.Name == policy.Name })
		switch {
		case index >= 0 && apiequality.Semantic.DeepEqual(want[index].Spec, policy.Spec):
			want = slices.Delete(want, index, index+1)
		case index < 0 && isGeneral(policy):
			errs = append(errs, client.IgnoreNotFound(r.client.Delete(ctx, policy)))
		}
	}
	for _, policy := range want {
		policy.Namespace = namespace.Name
		errs = append(errs, kube.Apply(ctx, r.client, r.FieldOwner, policy))
	}
	err = errors.Join(errs...)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, nil
	}
	return kube.Result(err)
}

// endpoint is an address with a port.
type endpoint struct {
	cidr string
	port int32
}

// endpoints are those of the API server of the cluster: of its Service, and of its EndpointSlices, as it depends on the network which of the
// two a policy is applied to.
func (r *reconciler) endpoints(ctx context.Context) ([]endpoint, error) {
	service := &corev1.Service{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, service); err != nil {
		return nil, fmt.Errorf("read Service of the API server: %w", err)
	}
	slicesOf := &discoveryv1.EndpointSliceList{}
	if err := r.client.List(ctx, slicesOf, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}); err != nil {
		return nil, fmt.Errorf("list endpoints of the API server: %w", err)
	}
	var found []endpoint
	add := func(address string, port int32) {
		if ip, err := netip.ParseAddr(address); err == nil {
			found = append(found, endpoint{netip.PrefixFrom(ip, ip.BitLen()).String(), port})
		}
	}
	for _, ip := range service.Spec.ClusterIPs {
		for _, p := range service.Spec.Ports {
			add(ip, p.Port)
		}
	}
	for _, slice := range slicesOf.Items {
		for _, e := range slice.Endpoints {
			for _, address := range e.Addresses {
				for _, p := range slice.Ports {
					if p.Port != nil {
						add(address, *p.Port)
					}
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b endpoint) int { return cmp.Or(cmp.Compare(a.cidr, b.cidr), cmp.Compare(a.port, b.port)) })
	return slices.Compact(found), nil
}
