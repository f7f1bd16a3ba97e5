package nodeproblemdetector

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	golden.Objects(t, "objects.yaml", Objects(Values{Image: "registry.example/gardener:v1", APIServer: "api.crazy-botany.example.com"}))
}
