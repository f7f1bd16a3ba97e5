package exposure

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	v := ForAPIServer("shoot--dev--first", "api.first.dev.internal.example.com", "api.first.example.com", "api.first.example.com")
	golden.Objects(t, "kube-apiserver.yaml", Objects(v), gatewayv1.Install)
	v.Gateway = client.ObjectKey{Namespace: "gateway--zone--a", Name: "gateway"}
	v.Others = []client.ObjectKey{{Namespace: "gateway", Name: "gateway"}}
	golden.Objects(t, "zone.yaml", Objects(v), gatewayv1.Install)
}
