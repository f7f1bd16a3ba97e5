package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	golden.Objects(t, "objects.yaml", Objects(Values{
		ControllerImage: "registry.example/gardener:v1", ProxyImage: "registry.example/haproxy:v1", Replicas: 2,
		ServiceAnnotations: map[string]string{"load-balancer.example/kind": "fast"}, ExternalTrafficPolicy: "Local",
	}), gatewayv1.Install)
}

// A gateway that ends connections has a third container, and reads Secrets in its namespace.
func TestObjectsThatTerminateTLS(t *testing.T) {
	golden.Objects(t, "terminating.yaml", Objects(Values{
		ControllerImage: "registry.example/gardener:v1", ProxyImage: "registry.example/haproxy:v1", Replicas: 1, TerminateTLS: true,
	}), gatewayv1.Install)
}

// A Service of clients may have the name of the one for pods.
func TestInternalServiceIsNotRenderedTwice(t *testing.T) {
	services := 0
	for _, object := range Objects(Values{TerminateTLS: true, ServiceName: InternalService}) {
		if _, ok := object.(*corev1.Service); ok {
			services++
		}
	}
	if services != 1 {
		t.Errorf("there are %d Services", services)
	}
}

func TestLoadBalancingOf(t *testing.T) {
	want := LoadBalancing{Namespace: "gateway", Hosts: []string{"a.example.com", "b.example.com"}}
	if got, ok := LoadBalancingOf(want.ConfigMap("n")); !ok || !cmp.Equal(want, got) {
		t.Errorf("LoadBalancingOf() is %v %t, want %v", got, ok, want)
	}
	if got, ok := LoadBalancingOf(&corev1.ConfigMap{}); ok {
		t.Errorf("LoadBalancingOf() is %v, without a namespace", got)
	}
}

// A Secret counts for the route of its name only, whatever its labels say.
func TestRouteOf(t *testing.T) {
	route := types.NamespacedName{Namespace: "shoot--dev--a", Name: "kube-apiserver"}
	secret := Credentials{Namespace: "gateway", Route: route, RouteNamespaceUID: "uid"}.Secret()
	if got, ok := RouteOf(secret); !ok || got != route || secret.Name != "shoot--dev--a.kube-apiserver" || secret.OwnerReferences[0].UID != "uid" {
		t.Errorf("RouteOf(%v) is %v %t", secret, got, ok)
	}
	secret.Labels[LabelRouteNamespace] = "shoot--dev--b"
	if got, ok := RouteOf(secret); ok {
		t.Errorf("RouteOf() is %v, with the labels of another route", got)
	}
}

// The gateway of a handler has no objects that others have too.
func TestObjectsOfHandler(t *testing.T) {
	golden.Objects(t, "handler.yaml", FurtherObjects(Values{
		ControllerImage: "registry.example/gardener:v1", ProxyImage: "registry.example/haproxy:v1", Replicas: 1, Handler: "internet",
		Namespace: "istio-ingress-handler-internet", ServiceName: "istio-ingressgateway",
		PodLabels:          map[string]string{"app": "istio-ingressgateway", constants.ExposureClassHandlerName: "other"},
		ServiceAnnotations: map[string]string{"load-balancer.example/kind": "public"}, LoadBalancerClass: new("example.com/public"), LoadBalancerIP: new("192.0.2.1"),
	}), gatewayv1.Install)
}

func TestObjectsOfZone(t *testing.T) {
	golden.Objects(t, "zone.yaml", FurtherObjects(Values{
		ControllerImage: "registry.example.com/gardener:v1", ProxyImage: "registry.example.com/haproxy:v1", Replicas: 2, Zone: "a",
		Namespace: ZoneNamespace(Namespace, "a"), ServiceAnnotations: map[string]string{"load-balancer.example/zone": "a"},
	}), gatewayv1.Install)
}

// Kubernetes refuses pods with a label that is too long.
func TestInternalPolicyLabel(t *testing.T) {
	if errs := validation.IsQualifiedName(InternalPolicyLabel()); len(errs) > 0 {
		t.Errorf("%s: %v", InternalPolicyLabel(), errs)
	}
}
