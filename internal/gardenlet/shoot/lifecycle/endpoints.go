package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// endpoints returns the addresses of the Ingresses and TLSRoutes in the namespace of a control plane that are to be advertised, sorted by name.
// Extensions and operators label them.
func (r observer) endpoints(ctx context.Context, namespace string) ([]corev1beta1.ShootAdvertisedAddress, error) {
	advertised := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{constants.ShootEndpointAdvertise: "true"}}
	ingresses, routes := &networkingv1.IngressList{}, &gatewayv1.TLSRouteList{}
	if err := r.seedAPI.List(ctx, ingresses, advertised...); err != nil {
		return nil, fmt.Errorf("list Ingresses: %w", err)
	}
	if err := r.seedAPI.List(ctx, routes, advertised...); err != nil {
		return nil, fmt.Errorf("list TLSRoutes: %w", err)
	}
	var list []corev1beta1.ShootAdvertisedAddress
	add := func(of client.Object, name, host string) {
		if strings.Contains(host, "*") { // not the name of a server
			return
		}
		address := corev1beta1.ShootAdvertisedAddress{Name: name, URL: "https://" + host}
		if application := of.GetLabels()[constants.ShootEndpointApplication]; application != "" {
			address.Application = &application
		}
		list = append(list, address)
	}
	for i := range ingresses.Items {
		ingress := &ingresses.Items[i]
		for j, tls := range ingress.Spec.TLS { // other hosts have no https
			for k, host := range tls.Hosts {
				add(ingress, fmt.Sprintf("ingress/%s/%d/%d", ingress.Name, j, k), host)
			}
		}
	}
	for i := range routes.Items {
		route := &routes.Items[i]
		for j, host := range route.Spec.Hostnames {
			add(route, fmt.Sprintf("tlsroute/%s/%d", route.Name, j), string(host))
		}
	}
	slices.SortFunc(list, func(a, b corev1beta1.ShootAdvertisedAddress) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}
