// Package exposure exposes a Service in the namespace of a shoot through the gateway of its seed, by the server names (SNI) of clients.
package exposure

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/component/gateway"
)

// Values describe what is exposed.
type Values struct {
	// Namespace is the namespace of the Service and of the TLSRoute.
	Namespace string
	// Name is the name of the TLSRoute. The default is that of the Service.
	Name string
	// Hosts are the server names. Duplicates are removed.
	Hosts []string
	// Service and Port are the backend.
	Service string
	Port    int32
	// Gateway is the Gateway of the route. The default is that of the seed; an exposure class may have its own.
	Gateway client.ObjectKey
	// Others are further Gateways of the route.
	Others []client.ObjectKey
}

// ForAPIServer returns the values for the kube-apiserver of a shoot.
func ForAPIServer(namespace string, hosts ...string) Values {
	return Values{Namespace: namespace, Hosts: hosts, Service: "kube-apiserver", Port: 443}
}

// Objects renders the TLSRoute. It may be created before the Service.
func Objects(v Values) []client.Object {
	if v.Name == "" {
		v.Name = v.Service
	}
	var hostnames []gatewayv1.Hostname
	for _, host := range slices.Compact(slices.Sorted(slices.Values(v.Hosts))) {
		hostnames = append(hostnames, gatewayv1.Hostname(host))
	}
	var parents []gatewayv1.ParentReference
	for _, key := range append([]client.ObjectKey{gateway.KeyOr(v.Gateway)}, v.Others...) {
		// Defaults are set explicitly: server-side apply compares references by all their fields.
		parents = append(parents, gatewayv1.ParentReference{
			Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway")),
			Namespace: new(gatewayv1.Namespace(key.Namespace)), Name: gatewayv1.ObjectName(key.Name),
			SectionName: new(gatewayv1.SectionName(gateway.Listener)),
		})
	}
	return []client.Object{&gatewayv1.TLSRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name},
		Spec: gatewayv1.TLSRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: parents},
			Hostnames:       hostnames,
			Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{
				Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Service")),
				Name: gatewayv1.ObjectName(v.Service), Port: new(v.Port),
			}, Weight: new(int32(1))}}}},
		},
	}}
}
