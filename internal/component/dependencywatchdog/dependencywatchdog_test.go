package dependencywatchdog

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	v := Values{Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 1}
	prober, err := ProberObjects(v)
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "prober.yaml", prober)
	weeder, err := WeederObjects(v)
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "weeder.yaml", weeder)
	golden.Objects(t, "shoot.yaml", TargetObjects())
}
