package flannel

import (
	"net/netip"
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	for file, pods := range map[string][]netip.Prefix{
		"objects.yaml":    {netip.MustParsePrefix("10.3.0.0/16")},
		"dual-stack.yaml": {netip.MustParsePrefix("10.3.0.0/16"), netip.MustParsePrefix("fd00:10:3::/52")},
		"ipv6.yaml":       {netip.MustParsePrefix("fd00:10:3::/52")},
	} {
		t.Run(file, func(t *testing.T) {
			objects, err := Objects(Values{Image: "registry.example/flannel:v1", Pods: pods, Backend: VXLAN, ClusterRole: "gardener.cloud:flannel"})
			if err != nil {
				t.Fatal(err)
			}
			golden.Objects(t, file, objects)
		})
	}
}
