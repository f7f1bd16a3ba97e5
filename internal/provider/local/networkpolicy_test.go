package local

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/test/golden"
)

// What machines reach with it, and what not, test/attack tests.
func TestMachinesPolicy(t *testing.T) {
	registries := []localv1alpha1.MachineRegistry{
		{Host: "registry.k8s.io", Server: "https://registry.k8s.io", Mirrors: []string{"http://172.30.0.1:5000/v2/registry.k8s.io", "https://mirror.example"}},
		{Host: "registry.local:5000", Server: "http://172.30.0.1:5000", Mirrors: []string{"https://[2001:db8::1]", "http://10.9.0.1"}},
	}
	seed := ofSeed().Seed
	seed.Spec.Networks.BlockCIDRs = []string{"192.168.7.0/24"}
	state := &infrastructureState{Nodes: []string{"10.7.0.0/16"}}
	for name, inSeed := range map[string]bool{"machines-in-seed.yaml": true, "machines-elsewhere.yaml": false} {
		golden.Objects(t, name, []client.Object{MachinesPolicy("infra-shoot--dev--crazy", networksOf(seed, "fd00:10::/32", state, inSeed), registries)})
	}
	golden.Objects(t, "bastion-policy.yaml", []client.Object{
		BastionPolicy("infra-shoot--dev--crazy", "bastion-a", []string{"203.0.113.0/24", "::/128"}), BastionPolicy("infra-shoot--dev--crazy", "bastion-b", nil),
	})
}
