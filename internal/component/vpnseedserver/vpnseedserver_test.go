package vpnseedserver

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/tunnel"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "shoot--dev--first", Image: "registry.example/gardener:v1", Replicas: 2, Spread: []string{corev1.LabelHostname},
		ServerSecret: "vpn-seed-server-1", CASecret: "ca-vpn-bundle-1", Host: "tunnel.first.dev.internal.example.com",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects, gatewayv1.Install)
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			if err := tunnel.NewServerCommand().ParseFlags(deployment.Spec.Template.Spec.Containers[0].Args[1:]); err != nil {
				t.Error(err)
			}
		}
	}
}
