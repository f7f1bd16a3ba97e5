package machinecontrollermanager

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "shoot--dev--crazy", Image: "registry.example/gardener:v1", Replicas: 1, Provider: "local",
		GenericKubeconfig: "generic-token-kubeconfig-1234", Flags: []string{"--machine-drain-timeout=1h"},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
	golden.Objects(t, "target.yaml", TargetObjects())
}
