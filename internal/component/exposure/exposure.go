// Package exposure makes a Service in the namespace of a shoot reachable through the gateway of its seed, by the server names that
// clients ask for.
package exposure

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/component/gateway"
)

// Values describe a way in.
type Values struct {
	// Namespace is that of the Service, and of the TLSRoute.
	Namespace string
	// Name is that of the TLSRoute. The default is that of the Service.
	Name string
	// Hosts are the names that lead to the Service. Doubles are left out.
	Hosts []string
	// Service and Port are where they lead to.
	Service string
	Port    int32
	// Gateway is the Gateway, the default is that of the seed. An exposure class may have one of its own.
	Gateway client.ObjectKey
}

// ForAPIServer returns the values for the kube-apiserver of a shoot with the names that it has.
func ForAPIServer(namespace string, hosts ...string) Values {
	return Values{Namespace: namespace, Hosts: hosts, Service: "kube-apiserver", Port: 443}
}

// Objects renders the TLSRoute. It may be there before the pods of the Service, and before the Service itself.
func Objects(v Values) []client.Object {
	if v.Name == "" {
		v.Name = v.Service
	}
	if v.Gateway.Name == "" {
		v.Gateway = client.ObjectKey{Namespace: gateway.Namespace, Name: gateway.Name}
	}
	var hostnames []gatewayv1.Hostname
	for _, host := range slices.Compact(slices.Sorted(slices.Values(v.Hosts))) {
		hostnames = append(hostnames, gatewayv1.Hostname(host))
	}
	return []client.Object{&gatewayv1.TLSRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name},
		Spec: gatewayv1.TLSRouteSpec{
			// Defaults are written out: server-side apply compares references by all their fields.
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
				Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway")),
				Namespace: new(gatewayv1.Namespace(v.Gateway.Namespace)), Name: gatewayv1.ObjectName(v.Gateway.Name),
				SectionName: new(gatewayv1.SectionName(gateway.Listener)),
			}}},
			Hostnames: hostnames,
			Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{
				Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Service")),
				Name: gatewayv1.ObjectName(v.Service), Port: new(v.Port),
			}, Weight: new(int32(1))}}}},
		},
	}}
}
