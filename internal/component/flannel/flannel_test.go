package flannel

import (
	"net/netip"
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Image: "registry.example/flannel:v1", Pods: netip.MustParsePrefix("10.3.0.0/16"), Backend: VXLAN, ClusterRole: "gardener.cloud:flannel",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}
