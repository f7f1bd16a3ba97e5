package vpnshoot

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"gardener.cloud/gardener/internal/tunnel"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Image: "registry.example/gardener:v1", Replicas: 2, Server: "api.first.dev.internal.example.com:443",
		ServerName:  "tunnel.first.dev.internal.example.com",
		Certificate: []byte("certificate"), Key: []byte("key"), CABundle: []byte("CA bundle"),
		Networks: []string{"10.250.0.0/16", "10.3.0.0/16", "10.4.0.0/16"},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			if err := tunnel.NewAgentCommand().ParseFlags(deployment.Spec.Template.Spec.Containers[0].Args[1:]); err != nil {
				t.Error(err)
			}
		}
	}
}
