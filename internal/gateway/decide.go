package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/gateway/haproxy"
	"gardener.cloud/gardener/internal/gateway/terminator"
)

const (
	// reasonHostnameConflict says that older routes use all host names of a route.
	reasonHostnameConflict = "HostnameConflict"
	// tlsRoute is the only supported kind of routes.
	tlsRoute gatewayv1.Kind = "TLSRoute"
)

// facts are what the routes of one gateway depend on.
type facts struct {
	gateway *gatewayv1.Gateway
	routes  []gatewayv1.TLSRoute
	// front is the Service in front of the HAProxies. It may be nil.
	front *corev1.Service
	// services are the backends of routes, by name.
	services map[types.NamespacedName]*corev1.Service
	// endpoints are the EndpointSlices of Services with a ready endpoint.
	endpoints map[types.NamespacedName][]*discoveryv1.EndpointSlice
	// credentials are those of routes whose connections end at the gateway.
	credentials map[types.NamespacedName]*terminator.Credentials
	// namespaces are the labels of namespaces by name.
	namespaces map[string]labels.Set
}

// verdict is the result of decide.
type verdict struct {
	table haproxy.Table
	// servers are the kube-apiservers whose connections end at the gateway, by their routes.
	servers   map[types.NamespacedName]terminator.Server
	listeners []listenerVerdict
	parents   map[types.NamespacedName][]parentVerdict
}

// listenerVerdict is the status of a listener.
type listenerVerdict struct {
	name     gatewayv1.SectionName
	accepted outcome
	refs     outcome
	attached int32
}

// parentVerdict is the status of one reference of a route to the gateway.
type parentVerdict struct {
	ref      gatewayv1.ParentReference
	accepted outcome
	refs     outcome
	// partial lists the host names that older routes use. It is empty if there are none.
	partial string
}

// outcome is the status, reason and message of a condition.
type outcome struct {
	ok              bool
	reason, message string
}

func valid[R ~string](reason R) outcome { return outcome{ok: true, reason: string(reason)} }

func invalid[R ~string](reason R, format string, args ...any) outcome {
	return outcome{reason: string(reason), message: fmt.Sprintf(format, args...)}
}

// decide returns the table of HAProxy, and the status of the gateway and its routes. Of two routes with the same host name, the older one is
// used.
func decide(f facts) verdict {
	v := verdict{
		table:   haproxy.NewTable(),
		servers: map[types.NamespacedName]terminator.Server{},
		parents: map[types.NamespacedName][]parentVerdict{},
	}
	for i := range f.gateway.Spec.Listeners {
		v.listeners = append(v.listeners, decideListener(&f.gateway.Spec.Listeners[i], f.front))
	}
	routes := slices.Clone(f.routes)
	slices.SortFunc(routes, func(a, b gatewayv1.TLSRoute) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	owners := map[string]types.NamespacedName{}
	for i := range routes {
		route := &routes[i]
		key := types.NamespacedName{Namespace: route.Namespace, Name: route.Name}
		to, refs, unsupported := backend(route, f)
		server := terminator.Server{Credentials: f.credentials[key]}
		attachedTo := map[gatewayv1.SectionName]bool{}
		for _, ref := range route.Spec.ParentRefs {
			if !refersTo(ref, route.Namespace, f.gateway) {
				continue
			}
			parent := parentVerdict{ref: ref, refs: refs}
			var hosts []string
			hosts, parent.accepted = attach(f, route, ref, v.listeners, attachedTo)
			if parent.accepted.ok && unsupported != "" {
				hosts, parent.accepted = nil, invalid(gatewayv1.RouteReasonUnsupportedValue, "%s", unsupported)
			}
			var lost []string
			for _, host := range hosts {
				if owner, taken := owners[host]; taken && owner != key {
					lost = append(lost, fmt.Sprintf("%s is used by %s", host, owner))
					continue
				}
				owners[host] = key
				if server.Credentials == nil || strings.HasPrefix(host, "*") {
					v.table.Add(host, to)
					continue
				}
				v.table.AddBackend(host, haproxy.Backend{Service: to, Through: terminatorAddress})
				server.Hosts = append(server.Hosts, host)
			}
			switch {
			case len(lost) > 0 && len(lost) == len(hosts):
				parent.accepted = invalid(reasonHostnameConflict, "%s", strings.Join(lost, ", "))
			case len(lost) > 0:
				parent.partial = strings.Join(lost, ", ")
			}
			v.parents[key] = append(v.parents[key], parent)
		}
		if len(server.Hosts) > 0 {
			server.Endpoints = podsOf(route, f)
			v.servers[key] = server
		}
		if accepted := slices.ContainsFunc(v.parents[key], func(p parentVerdict) bool { return p.accepted.ok }); accepted {
			for i := range v.listeners {
				if attachedTo[v.listeners[i].name] {
					v.listeners[i].attached++
				}
			}
		}
	}
	return v
}

// decideListener says whether a listener is supported: TLS passthrough, on a port of the Service.
func decideListener(l *gatewayv1.Listener, front *corev1.Service) listenerVerdict {
	v := listenerVerdict{name: l.Name, accepted: valid(gatewayv1.ListenerReasonAccepted), refs: valid(gatewayv1.ListenerReasonResolvedRefs)}
	switch {
	case l.Protocol != gatewayv1.TLSProtocolType:
		v.accepted = invalid(gatewayv1.ListenerReasonUnsupportedProtocol, "protocol %s is not supported, only TLS", l.Protocol)
	case l.TLS == nil || ptr.Deref(l.TLS.Mode, gatewayv1.TLSModeTerminate) != gatewayv1.TLSModePassthrough:
		v.accepted = invalid(gatewayv1.ListenerReasonUnsupportedValue, "TLS mode Terminate is not supported, only Passthrough")
	case front != nil && !slices.ContainsFunc(front.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == l.Port }):
		v.accepted = invalid(gatewayv1.ListenerReasonPortUnavailable, "Service %s/%s has no port %d", front.Namespace, front.Name, l.Port)
	}
	if l.AllowedRoutes != nil {
		for _, kind := range l.AllowedRoutes.Kinds {
			if !isTLSRoute(kind) {
				v.refs = invalid(gatewayv1.ListenerReasonInvalidRouteKinds, "routes of kind %s are not supported, only TLSRoutes", kind.Kind)
			}
		}
	}
	return v
}

func isTLSRoute(kind gatewayv1.RouteGroupKind) bool {
	return kind.Kind == tlsRoute && ptr.Deref(kind.Group, gatewayv1.GroupName) == gatewayv1.GroupName
}

// refersTo says whether a reference in a namespace refers to the gateway.
func refersTo(ref gatewayv1.ParentReference, namespace string, gateway *gatewayv1.Gateway) bool {
	return ptr.Deref(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName && ptr.Deref(ref.Kind, "Gateway") == "Gateway" &&
		string(ref.Name) == gateway.Name && string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))) == gateway.Namespace
}

// attach returns the host names of a route for one of its references, and counts it for the listeners that accept it.
func attach(
	f facts, route *gatewayv1.TLSRoute, ref gatewayv1.ParentReference, verdicts []listenerVerdict, attachedTo map[gatewayv1.SectionName]bool,
) ([]string, outcome) {
	why := invalid(gatewayv1.RouteReasonNoMatchingParent, "the Gateway has no such listener")
	hosts := map[string]bool{}
	for i := range f.gateway.Spec.Listeners {
		l := &f.gateway.Spec.Listeners[i]
		if ref.SectionName != nil && *ref.SectionName != l.Name || ref.Port != nil && *ref.Port != l.Port || !verdicts[i].accepted.ok {
			continue
		}
		if !allows(l, route, f) {
			if why.reason == string(gatewayv1.RouteReasonNoMatchingParent) {
				why = invalid(gatewayv1.RouteReasonNotAllowedByListeners, "no listener allows TLSRoutes of namespace %s", route.Namespace)
			}
			continue
		}
		common := intersection(l.Hostname, route.Spec.Hostnames)
		if len(common) == 0 {
			why = invalid(gatewayv1.RouteReasonNoMatchingListenerHostname, "no host name matches a listener")
			continue
		}
		attachedTo[l.Name] = true
		for _, host := range common {
			hosts[host] = true
		}
	}
	if len(hosts) == 0 {
		return nil, why
	}
	return slices.Sorted(maps.Keys(hosts)), valid(gatewayv1.RouteReasonAccepted)
}

// allows says whether a listener allows routes of the namespace of this one.
func allows(l *gatewayv1.Listener, route *gatewayv1.TLSRoute, f facts) bool {
	from, selector := gatewayv1.NamespacesFromSame, (*metav1.LabelSelector)(nil)
	if allowed := l.AllowedRoutes; allowed != nil {
		if len(allowed.Kinds) > 0 && !slices.ContainsFunc(allowed.Kinds, isTLSRoute) {
			return false
		}
		if n := allowed.Namespaces; n != nil {
			from, selector = ptr.Deref(n.From, from), n.Selector
		}
	}
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return route.Namespace == f.gateway.Namespace
	case gatewayv1.NamespacesFromSelector:
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		return err == nil && parsed.Matches(f.namespaces[route.Namespace])
	case gatewayv1.NamespacesFromNone:
	}
	return false
}

// intersection returns the host names of a route that match a listener, in lower case. If one of the two is a wildcard, the more specific one
// is returned. Invalid host names are ignored.
func intersection(listener *gatewayv1.Hostname, route []gatewayv1.Hostname) []string {
	var common []string
	limit := strings.ToLower(string(ptr.Deref(listener, "")))
	for _, hostname := range route {
		host := strings.ToLower(string(hostname))
		if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) > 0 {
			continue
		}
		switch {
		case limit == "" || limit == host || covers(limit, host):
			common = append(common, host)
		case covers(host, limit):
			common = append(common, limit)
		}
	}
	return common
}

// covers says whether a wildcard includes a host name or another wildcard.
func covers(wildcard, host string) bool {
	suffix, ok := strings.CutPrefix(wildcard, "*")
	return ok && strings.HasSuffix(host, suffix) && host != suffix
}

// backend returns the address of a route's backend. It is zero if there is none, and the outcome says why. If the gateway does not support
// the route, the reason is returned as a text.
//
// Connections to a Service without ready endpoints are refused at once, where HAProxy would retry for seconds. The retries are expensive: the
// ICMP message with which kube-proxy refuses them stays in the queue of the socket, and HAProxy polls without pause while it is there.
func backend(route *gatewayv1.TLSRoute, f facts) (netip.AddrPort, outcome, string) {
	var refs []gatewayv1.BackendRef
	for _, rule := range route.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			if ptr.Deref(ref.Weight, 1) > 0 {
				refs = append(refs, ref)
			}
		}
	}
	resolved := valid(gatewayv1.RouteReasonResolvedRefs)
	switch {
	case len(refs) > 1:
		return netip.AddrPort{}, resolved, "a route may only have one Service as backend"
	case len(refs) == 0:
		return netip.AddrPort{}, resolved, ""
	}
	ref := refs[0]
	key := types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.Namespace))), Name: string(ref.Name)}
	if ptr.Deref(ref.Group, "") != "" || ptr.Deref(ref.Kind, "Service") != "Service" {
		return netip.AddrPort{}, invalid(gatewayv1.RouteReasonInvalidKind, "%s is not a Service", key), ""
	}
	if key.Namespace != route.Namespace {
		return netip.AddrPort{}, invalid(gatewayv1.RouteReasonRefNotPermitted, "Service %s is in another namespace", key), ""
	}
	service := f.services[key]
	if service == nil {
		return netip.AddrPort{}, invalid(gatewayv1.RouteReasonBackendNotFound, "Service %s does not exist", key), ""
	}
	addr, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return netip.AddrPort{}, invalid(gatewayv1.RouteReasonBackendNotFound, "Service %s has no cluster IP", key), ""
	}
	if ref.Port == nil || !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == *ref.Port && p.Protocol == corev1.ProtocolTCP
	}) {
		return netip.AddrPort{}, invalid(gatewayv1.RouteReasonBackendNotFound, "Service %s has no TCP port %d", key, ptr.Deref(ref.Port, 0)), ""
	}
	if len(f.endpoints[key]) == 0 {
		return netip.AddrPort{}, resolved, ""
	}
	return netip.AddrPortFrom(addr, uint16(*ref.Port)), resolved, "" //nolint:gosec // a port of a Service is one
}

// podsOf returns the addresses of the ready pods of a route's backend, sorted.
func podsOf(route *gatewayv1.TLSRoute, f facts) []netip.AddrPort {
	var pods []netip.AddrPort
	for _, rule := range route.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			key := types.NamespacedName{Namespace: route.Namespace, Name: string(ref.Name)}
			service := f.services[key]
			if service == nil || ref.Port == nil || ptr.Deref(ref.Weight, 1) == 0 {
				continue
			}
			i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *ref.Port })
			if i < 0 {
				continue
			}
			for _, slice := range f.endpoints[key] {
				pods = append(pods, readyPods(slice, service.Spec.Ports[i].Name)...)
			}
		}
	}
	slices.SortFunc(pods, netip.AddrPort.Compare)
	return slices.Compact(pods)
}

// readyPods returns the addresses of ready endpoints of a slice, with the port of a name.
func readyPods(slice *discoveryv1.EndpointSlice, name string) []netip.AddrPort {
	i := slices.IndexFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return ptr.Deref(p.Name, "") == name && p.Port != nil })
	if i < 0 {
		return nil
	}
	var pods []netip.AddrPort
	for _, endpoint := range slice.Endpoints {
		if !ready(endpoint) || len(endpoint.Addresses) == 0 {
			continue
		}
		// All addresses of an endpoint are the same one.
		if addr, err := netip.ParseAddr(endpoint.Addresses[0]); err == nil {
			pods = append(pods, netip.AddrPortFrom(addr, uint16(*slice.Ports[i].Port))) //nolint:gosec // a port of a pod is one
		}
	}
	return pods
}
