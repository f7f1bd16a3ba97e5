package exposure

import (
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	golden.Objects(t, "kube-apiserver.yaml", Objects(ForAPIServer("shoot--dev--first",
		"api.first.dev.internal.example.com", "api.first.example.com", "api.first.example.com")), gatewayv1.Install)
}
