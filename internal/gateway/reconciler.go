package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/gateway/haproxy"
	"gardener.cloud/gardener/internal/kube"
)

// observer reads the objects that a gateway depends on.
type observer struct {
	client client.Client
	// gateway and front are the Gateway and the Service in front of it.
	gateway, front types.NamespacedName
}

// observe returns the facts and the class of the gateway, or nil if the gateway does not exist or has another controller.
func (o *observer) observe(ctx context.Context) (*facts, *gatewayv1.GatewayClass, error) {
	f := &facts{
		gateway: &gatewayv1.Gateway{}, services: map[types.NamespacedName]*corev1.Service{},
		endpoints: map[types.NamespacedName][]*discoveryv1.EndpointSlice{}, namespaces: map[string]labels.Set{},
	}
	if err := o.client.Get(ctx, o.gateway, f.gateway); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	class := &gatewayv1.GatewayClass{}
	if err := o.client.Get(ctx, client.ObjectKey{Name: string(f.gateway.Spec.GatewayClassName)}, class); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if class.Spec.ControllerName != ControllerName {
		return nil, nil, nil
	}
	routes, services, namespaces := &gatewayv1.TLSRouteList{}, &corev1.ServiceList{}, &corev1.NamespaceList{}
	endpoints := &discoveryv1.EndpointSliceList{}
	for _, list := range []client.ObjectList{routes, services, endpoints, namespaces} {
		if err := o.client.List(ctx, list); err != nil {
			return nil, nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	f.routes = routes.Items
	for i := range services.Items {
		f.services[client.ObjectKeyFromObject(&services.Items[i])] = &services.Items[i]
	}
	for i := range endpoints.Items {
		if slice := &endpoints.Items[i]; serves(slice) {
			service := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
			f.endpoints[service] = append(f.endpoints[service], slice)
		}
	}
	for i := range namespaces.Items {
		f.namespaces[namespaces.Items[i].Name] = namespaces.Items[i].Labels
	}
	f.front = f.services[o.front]
	return f, class, nil
}

// serves says whether an endpoint in a slice is ready.
func serves(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, ready)
}

func ready(endpoint discoveryv1.Endpoint) bool { return ptr.Deref(endpoint.Conditions.Ready, true) }

// router writes the routes into HAProxy's maps, in every replica.
type router struct {
	observer
	// credentials may be nil: all connections are passed through then.
	credentials *credentials
	programmer  *haproxy.Programmer
	metrics     *metrics
	last        haproxy.Table
}

// Reconcile updates HAProxy's maps.
func (r *router) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	f, _, err := r.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	table := haproxy.NewTable()
	if f != nil {
		if f.credentials, err = r.credentials.read(ctx); err != nil {
			return reconcile.Result{}, err
		}
		table = decide(*f).table
	}
	if !table.Equal(r.last) {
		logf.FromContext(ctx).Info("Changing routes", "hosts", len(table.Exact), "wildcards", len(table.Suffix))
	}
	if err := r.programmer.Set(table); err != nil {
		return reconcile.Result{}, err
	}
	r.last = table
	r.metrics.hosts.Set(float64(len(table.Exact) + len(table.Suffix)))
	return reconcile.Result{}, nil
}

// reporter writes the status of the gateway, its class and its routes, in the leader.
type reporter struct{ observer }

// Reconcile writes each status that differs.
func (r *reporter) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	f, class, err := r.observe(ctx)
	if err != nil || f == nil {
		return reconcile.Result{}, err
	}
	v := decide(*f)
	errs := []error{
		patchStatus(ctx, r.client, class, func(c *gatewayv1.GatewayClass) { c.Status = classStatus(class) }),
		patchStatus(ctx, r.client, f.gateway, func(g *gatewayv1.Gateway) { g.Status = gatewayStatus(*f, v) }),
	}
	for i := range f.routes {
		route := &f.routes[i]
		err := patchStatus(ctx, r.client, route, func(changed *gatewayv1.TLSRoute) {
			changed.Status = routeStatus(*f, route, v.parents[client.ObjectKeyFromObject(route)])
		})
		if !apierrors.IsNotFound(err) { // it was deleted meanwhile
			errs = append(errs, err)
		}
	}
	return kube.Result(errors.Join(errs...))
}
