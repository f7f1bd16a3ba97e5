package localstorage

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	golden.Objects(t, "objects.yaml", append(Objects(Values{Image: "registry.example/local-storage:v1", ClusterRole: "gardener.cloud:local-storage"}), Class()))
}
