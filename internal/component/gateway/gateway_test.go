package gateway

import (
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	golden.Objects(t, "objects.yaml", Objects(Values{
		ControllerImage: "registry.example/gardener:v1", ProxyImage: "registry.example/haproxy:v1", Replicas: 2,
		ServiceAnnotations: map[string]string{"load-balancer.example/kind": "fast"}, ExternalTrafficPolicy: "Local",
	}), gatewayv1.Install)
}
