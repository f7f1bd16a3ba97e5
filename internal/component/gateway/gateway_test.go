package gateway

import (
	"testing"

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

// The gateway of a handler has no objects that others have too.
func TestObjectsOfHandler(t *testing.T) {
	golden.Objects(t, "handler.yaml", HandlerObjects(Values{
		ControllerImage: "registry.example/gardener:v1", ProxyImage: "registry.example/haproxy:v1", Replicas: 1, Handler: "internet",
		Namespace: "istio-ingress-handler-internet", ServiceName: "istio-ingressgateway",
		PodLabels:          map[string]string{"app": "istio-ingressgateway", constants.ExposureClassHandlerName: "other"},
		ServiceAnnotations: map[string]string{"load-balancer.example/kind": "public"}, LoadBalancerClass: new("example.com/public"), LoadBalancerIP: new("192.0.2.1"),
	}), gatewayv1.Install)
}
