package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/gateway/haproxy"
	"gardener.cloud/gardener/internal/gateway/terminator"
)

// route is a TLSRoute in namespace shoot, to port 443 of Service api there.
func route(name string, age time.Duration, hosts ...gatewayv1.Hostname) gatewayv1.TLSRoute {
	return gatewayv1.TLSRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))},
		Spec: gatewayv1.TLSRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
				Namespace: new(gatewayv1.Namespace("gateway")), Name: "gateway",
			}}},
			Hostnames: hosts,
			Rules:     []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{backendRef("api", 443)}}},
		},
	}
}

func backendRef(service gatewayv1.ObjectName, port int32) gatewayv1.BackendRef {
	return gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: service, Port: &port}}
}

func changed(r gatewayv1.TLSRoute, change func(*gatewayv1.TLSRoute)) gatewayv1.TLSRoute {
	change(&r)
	return r
}

func listener() gatewayv1.Listener {
	return gatewayv1.Listener{
		Name: "tls", Port: 443, Protocol: gatewayv1.TLSProtocolType,
		TLS:           &gatewayv1.ListenerTLSConfig{Mode: new(gatewayv1.TLSModePassthrough)},
		AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromAll)}},
	}
}

func service(namespace, name, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 443, Protocol: corev1.ProtocolTCP}}},
	}
}

// endpoints are a slice with two ready pods, and one that is not.
func endpoints() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: new("metrics"), Port: new(int32(1))}, {Name: new(""), Port: new(int32(6443))}}}
	for addr, ready := range map[string]*bool{"10.1.0.2": nil, "10.1.0.1": new(true), "10.1.0.3": new(false)} {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr}, Conditions: discoveryv1.EndpointConditions{Ready: ready}})
	}
	return slice
}

// Connections of routes with credentials end at the gateway, which knows the pods of their Services. The first route has the name if there are two.
func TestDecideServers(t *testing.T) {
	shoot, other := types.NamespacedName{Namespace: "shoot", Name: "ended"}, types.NamespacedName{Namespace: "shoot", Name: "other"}
	l := listener()
	v := decide(facts{
		gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"}, Spec: gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{l}},
		},
		routes: []gatewayv1.TLSRoute{
			route("ended", time.Hour, "API.a.example", "api.b.example", "*.wild.example"), route("other", 0, "api.a.example"), route("passed", 0, "tunnel.a.example"),
		},
		services:    map[types.NamespacedName]*corev1.Service{{Namespace: "shoot", Name: "api"}: service("shoot", "api", "10.0.0.1")},
		endpoints:   map[types.NamespacedName][]*discoveryv1.EndpointSlice{{Namespace: "shoot", Name: "api"}: {endpoints()}},
		credentials: map[types.NamespacedName]*terminator.Credentials{shoot: {}, other: {}},
	})
	if len(v.servers) != 1 {
		t.Fatalf("servers are %v, want that of the older route only", v.servers)
	}
	got := v.servers[shoot]
	if diff := cmp.Diff([]string{"api.a.example", "api.b.example"}, got.Hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if got, want := fmt.Sprint(got.Endpoints), "[10.1.0.1:6443 10.1.0.2:6443]"; got != want {
		t.Errorf("endpoints are %s, want %s", got, want)
	}
}

func TestDecide(t *testing.T) {
	const api = "10.0.0.1:443"
	allowed := func(from gatewayv1.FromNamespaces, selector *metav1.LabelSelector) func(*gatewayv1.Listener) {
		return func(l *gatewayv1.Listener) {
			l.AllowedRoutes.Namespaces = &gatewayv1.RouteNamespaces{From: &from, Selector: selector}
		}
	}
	role := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"role": value}}
	}
	for name, tc := range map[string]struct {
		listener func(*gatewayv1.Listener)
		routes   []gatewayv1.TLSRoute
		// want has addresses by host name; parents the reasons by route; attached how many routes the listener has.
		want     map[string]string
		parents  map[string]string
		attached int32
		accepted string
	}{
		"names and wildcards, in lower case": {
			routes: []gatewayv1.TLSRoute{route("a", 0, "API.a.example", "*.b.example")},
			want:   map[string]string{"api.a.example": api, "*.b.example": api}, parents: map[string]string{"a": "Accepted ResolvedRefs"}, attached: 1,
		},
		"the older of two routes": {
			routes:   []gatewayv1.TLSRoute{route("a", 0, "x.example"), route("b", time.Hour, "x.example")},
			want:     map[string]string{"x.example": api},
			parents:  map[string]string{"a": "!HostnameConflict ResolvedRefs", "b": "Accepted ResolvedRefs"},
			attached: 1,
		},
		"a route with one conflict": {
			routes:  []gatewayv1.TLSRoute{route("a", 0, "x.example", "y.example"), route("b", time.Hour, "x.example")},
			want:    map[string]string{"x.example": api, "y.example": api},
			parents: map[string]string{"a": "Accepted ResolvedRefs (x.example is used by shoot/b)", "b": "Accepted ResolvedRefs"}, attached: 2,
		},
		"two references of one route have no conflict": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) {
				second := r.Spec.ParentRefs[0]
				second.SectionName = new(gatewayv1.SectionName("tls"))
				r.Spec.ParentRefs = append(r.Spec.ParentRefs, second)
			})},
			want: map[string]string{"x.example": api}, parents: map[string]string{"a": "Accepted ResolvedRefs, Accepted ResolvedRefs"}, attached: 1,
		},
		"another gateway's route": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) { r.Spec.ParentRefs[0].Name = "other" })},
		},
		"no such listener": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) {
				r.Spec.ParentRefs[0].SectionName = new(gatewayv1.SectionName("other"))
			})},
			parents: map[string]string{"a": "!NoMatchingParent ResolvedRefs"},
		},
		"only of its own namespace": {
			listener: allowed(gatewayv1.NamespacesFromSame, nil), routes: []gatewayv1.TLSRoute{route("a", 0, "x.example")},
			parents: map[string]string{"a": "!NotAllowedByListeners ResolvedRefs"},
		},
		"of selected namespaces": {
			listener: allowed(gatewayv1.NamespacesFromSelector, role("shoot")), routes: []gatewayv1.TLSRoute{route("a", 0, "x.example")},
			want: map[string]string{"x.example": api}, parents: map[string]string{"a": "Accepted ResolvedRefs"}, attached: 1,
		},
		"of other selected namespaces": {
			listener: allowed(gatewayv1.NamespacesFromSelector, role("garden")), routes: []gatewayv1.TLSRoute{route("a", 0, "x.example")},
			parents: map[string]string{"a": "!NotAllowedByListeners ResolvedRefs"},
		},
		"a listener for a domain": {
			listener: func(l *gatewayv1.Listener) { l.Hostname = new(gatewayv1.Hostname("*.example")) },
			routes:   []gatewayv1.TLSRoute{route("a", 0, "x.example", "x.other", "example"), route("b", 0, "y.other")},
			want:     map[string]string{"x.example": api},
			parents:  map[string]string{"a": "Accepted ResolvedRefs", "b": "!NoMatchingListenerHostname ResolvedRefs"}, attached: 1,
		},
		"a wildcard of a route is narrowed by the listener": {
			listener: func(l *gatewayv1.Listener) { l.Hostname = new(gatewayv1.Hostname("a.b.example")) },
			routes:   []gatewayv1.TLSRoute{route("a", 0, "*.example")},
			want:     map[string]string{"a.b.example": api}, parents: map[string]string{"a": "Accepted ResolvedRefs"}, attached: 1,
		},
		"invalid host names": {
			routes: []gatewayv1.TLSRoute{route("a", 0, "x.example 1/2\n", "*")}, parents: map[string]string{"a": "!NoMatchingListenerHostname ResolvedRefs"},
		},
		"a name without backend is used all the same": {
			routes: []gatewayv1.TLSRoute{changed(route("a", time.Hour, "x.example"), func(r *gatewayv1.TLSRoute) {
				r.Spec.Rules[0].BackendRefs = []gatewayv1.BackendRef{backendRef("missing", 443)}
			}), route("b", 0, "x.example")},
			want:    map[string]string{"x.example": "-"},
			parents: map[string]string{"a": "Accepted !BackendNotFound", "b": "!HostnameConflict ResolvedRefs"}, attached: 1,
		},
		"a Service in another namespace": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) {
				r.Spec.Rules[0].BackendRefs[0].Namespace = new(gatewayv1.Namespace("garden"))
			})},
			want: map[string]string{"x.example": "-"}, parents: map[string]string{"a": "Accepted !RefNotPermitted"}, attached: 1,
		},
		"no Service": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) {
				r.Spec.Rules[0].BackendRefs[0].Kind = new(gatewayv1.Kind("Pod"))
			})},
			want: map[string]string{"x.example": "-"}, parents: map[string]string{"a": "Accepted !InvalidKind"}, attached: 1,
		},
		"a port that the Service does not have, and a Service without an address": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) {
				r.Spec.Rules[0].BackendRefs = []gatewayv1.BackendRef{backendRef("api", 8443)}
			}), changed(route("b", 0, "y.example"), func(r *gatewayv1.TLSRoute) {
				r.Spec.Rules[0].BackendRefs = []gatewayv1.BackendRef{backendRef("headless", 443)}
			})},
			want:    map[string]string{"x.example": "-", "y.example": "-"},
			parents: map[string]string{"a": "Accepted !BackendNotFound", "b": "Accepted !BackendNotFound"}, attached: 2,
		},
		"a Service without endpoints": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) {
				r.Spec.Rules[0].BackendRefs = []gatewayv1.BackendRef{backendRef("no-endpoints", 443)}
			})},
			want: map[string]string{"x.example": "-"}, parents: map[string]string{"a": "Accepted ResolvedRefs"}, attached: 1,
		},
		"one of two backends has no weight": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) {
				idle := backendRef("missing", 443)
				idle.Weight = new(int32(0))
				r.Spec.Rules[0].BackendRefs = append([]gatewayv1.BackendRef{idle}, r.Spec.Rules[0].BackendRefs...)
			})},
			want: map[string]string{"x.example": api}, parents: map[string]string{"a": "Accepted ResolvedRefs"}, attached: 1,
		},
		"several backends": {
			routes: []gatewayv1.TLSRoute{changed(route("a", 0, "x.example"), func(r *gatewayv1.TLSRoute) {
				r.Spec.Rules[0].BackendRefs = append(r.Spec.Rules[0].BackendRefs, backendRef("other", 443))
			})},
			parents: map[string]string{"a": "!UnsupportedValue ResolvedRefs"},
		},
		"a route with credentials ends at the gateway, but not its wildcards": {
			routes:  []gatewayv1.TLSRoute{route("ended", 0, "api.a.example", "*.b.example")},
			want:    map[string]string{"api.a.example": "127.0.0.1:8444 for " + api, "*.b.example": api},
			parents: map[string]string{"ended": "Accepted ResolvedRefs"}, attached: 1,
		},
		"a listener that terminates": {
			listener: func(l *gatewayv1.Listener) { l.TLS.Mode = nil }, routes: []gatewayv1.TLSRoute{route("a", 0, "x.example")},
			parents: map[string]string{"a": "!NoMatchingParent ResolvedRefs"}, accepted: "UnsupportedValue",
		},
		"a listener for HTTP":                   {listener: func(l *gatewayv1.Listener) { l.Protocol = gatewayv1.HTTPProtocolType }, accepted: "UnsupportedProtocol"},
		"a port that the Service does not have": {listener: func(l *gatewayv1.Listener) { l.Port = 8443 }, accepted: "PortUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{
				gateway: &gatewayv1.Gateway{
					ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"},
					Spec:       gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{listener()}},
				},
				routes: tc.routes, front: service("gateway", "gateway", "10.0.0.9"),
				services: map[types.NamespacedName]*corev1.Service{
					{Namespace: "shoot", Name: "api"}:          service("shoot", "api", "10.0.0.1"),
					{Namespace: "shoot", Name: "no-endpoints"}: service("shoot", "no-endpoints", "10.0.0.3"),
					{Namespace: "shoot", Name: "headless"}:     service("shoot", "headless", "None"),
					{Namespace: "garden", Name: "api"}:         service("garden", "api", "10.0.0.2"),
				},
				endpoints: map[types.NamespacedName][]*discoveryv1.EndpointSlice{
					{Namespace: "shoot", Name: "api"}: {endpoints()}, {Namespace: "garden", Name: "api"}: {endpoints()},
				},
				credentials: map[types.NamespacedName]*terminator.Credentials{{Namespace: "shoot", Name: "ended"}: {}},
				namespaces:  map[string]labels.Set{"shoot": {"role": "shoot"}},
			}
			if tc.listener != nil {
				tc.listener(&f.gateway.Spec.Listeners[0])
			}
			v := decide(f)
			got, want := map[string]string{}, map[string]string{}
			text := func(b haproxy.Backend) string {
				switch {
				case !b.Service.IsValid():
					return "-"
				case b.Through.IsValid():
					return b.Through.String() + " for " + b.Service.String()
				}
				return b.Service.String()
			}
			for host, to := range v.table.Exact {
				got[host] = text(to)
			}
			for suffix, to := range v.table.Suffix {
				got["*"+suffix] = text(to)
			}
			maps.Copy(want, tc.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
			parents := map[string]string{}
			for route, verdicts := range v.parents {
				var texts []string
				for _, p := range verdicts {
					text := brief(p.accepted) + " " + brief(p.refs)
					if p.partial != "" {
						text += " (" + p.partial + ")"
					}
					texts = append(texts, text)
				}
				parents[route.Name] = strings.Join(texts, ", ")
			}
			if diff := cmp.Diff(tc.parents, parents); diff != "" && len(tc.parents)+len(parents) > 0 {
				t.Errorf("parents (-want +got):\n%s", diff)
			}
			if got := v.listeners[0]; got.attached != tc.attached || got.accepted.ok != (tc.accepted == "") || !got.accepted.ok && got.accepted.reason != tc.accepted {
				t.Errorf("listener is %+v", got)
			}
		})
	}
}

func brief(o outcome) string {
	if o.ok {
		return o.reason
	}
	return "!" + o.reason
}

func TestStatus(t *testing.T) {
	f := facts{
		gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "gateway", Generation: 2},
			Spec:       gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{listener()}},
		},
		front: service("gateway", "gateway", "10.0.0.9"),
	}
	conditions := func() map[string]string {
		texts := map[string]string{}
		for _, c := range f.gateway.Status.Conditions {
			texts[c.Type] = fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
		return texts
	}
	f.gateway.Status = gatewayStatus(f, decide(f))
	if diff := cmp.Diff(map[string]string{"Accepted": "True Accepted", "Programmed": "False AddressNotAssigned"}, conditions()); diff != "" {
		t.Errorf("without an address (-want +got):\n%s", diff)
	}
	f.front.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "172.30.0.128"}, {Hostname: "lb.example"}}
	f.gateway.Status = gatewayStatus(f, decide(f))
	if diff := cmp.Diff(map[string]string{"Accepted": "True Accepted", "Programmed": "True Programmed"}, conditions()); diff != "" {
		t.Errorf("with an address (-want +got):\n%s", diff)
	}
	if got := f.gateway.Status.Addresses; len(got) != 2 || got[0].Value != "172.30.0.128" || *got[1].Type != gatewayv1.HostnameAddressType {
		t.Errorf("addresses are %+v", got)
	}
	if again := gatewayStatus(f, decide(f)); !cmp.Equal(again, f.gateway.Status) {
		t.Errorf("a second reconciliation changes something:\n%s", cmp.Diff(f.gateway.Status, again))
	}

	// The status of other controllers is kept; that of a reference that no longer exists is not.
	r := route("a", 0, "x.example")
	r.Status.Parents = []gatewayv1.RouteParentStatus{
		{ControllerName: "example.com/other", ParentRef: r.Spec.ParentRefs[0]},
		{ControllerName: ControllerName, ParentRef: gatewayv1.ParentReference{
			Namespace: new(gatewayv1.Namespace("gateway")), Name: "gateway", SectionName: new(gatewayv1.SectionName("old")),
		}},
	}
	f.routes = []gatewayv1.TLSRoute{r}
	v := decide(f)
	key := types.NamespacedName{Namespace: "shoot", Name: "a"}
	status := routeStatus(f, &r, v.parents[key])
	controllers := map[string]bool{}
	for _, p := range status.Parents {
		controllers[string(p.ControllerName)+" "+string(ptr.Deref(p.ParentRef.SectionName, ""))] = true
	}
	if got := slices.Sorted(maps.Keys(controllers)); !slices.Equal(got, []string{"example.com/other ", string(ControllerName) + " "}) {
		t.Errorf("parents are %q", got)
	}
	r.Status = status
	if again := routeStatus(f, &r, v.parents[key]); !cmp.Equal(again, status) {
		t.Errorf("a second reconciliation changes something:\n%s", cmp.Diff(status, again))
	}
}
