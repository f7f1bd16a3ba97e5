package resourcemanager

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, Config: ForSeed()})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}
