package apiserverproxy

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"gardener.cloud/gardener/internal/tunnel"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Image: "registry.example/gardener:v1", Server: "api.first.dev.internal.example.com:443", ServerName: "tunnel.first.dev.internal.example.com",
		Certificate: []byte("certificate"), Key: []byte("key"), CABundle: []byte("authorities"),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
	for _, object := range objects {
		if daemonSet, ok := object.(*appsv1.DaemonSet); ok {
			if err := tunnel.NewAPIServerProxyCommand().ParseFlags(daemonSet.Spec.Template.Spec.Containers[0].Args[1:]); err != nil {
				t.Error(err)
			}
		}
	}
}
