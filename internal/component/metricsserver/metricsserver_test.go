package metricsserver

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Image: "registry.example/metrics-server:v1", Certificate: []byte("certificate"), Key: []byte("key"),
		CABundle: []byte("CA bundle"), KubeletCABundle: []byte("CA bundle of kubelets"),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}
