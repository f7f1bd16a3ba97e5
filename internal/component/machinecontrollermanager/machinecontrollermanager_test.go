package machinecontrollermanager

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "shoot--dev--crazy", Image: "registry.example/gardener:v1", Replicas: 1,
		GenericKubeconfig: "generic-token-kubeconfig-1234",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
	golden.Objects(t, "target.yaml", TargetObjects())
}
