package capability

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestMatch(t *testing.T) {
	definitions := []corev1beta1.CapabilityDefinition{
		{Name: "architecture", Values: []string{"amd64", "arm64"}}, {Name: "boot", Values: []string{"secure", "legacy", "none"}},
	}
	type capabilities = corev1beta1.Capabilities
	for name, tc := range map[string]struct {
		machineType *corev1beta1.MachineType
		image       capabilities
		ranks       []int
		ok          bool
	}{
		"an unknown type":                       {image: capabilities{"boot": {"none"}}, ranks: []int{1, 2}, ok: true},
		"an image that leaves all out":          {machineType: &corev1beta1.MachineType{Capabilities: capabilities{"boot": {"none", "legacy"}}}, ranks: []int{1, 1}, ok: true},
		"another architecture":                  {image: capabilities{"architecture": {"amd64"}}},
		"no value is shared":                    {machineType: &corev1beta1.MachineType{Capabilities: capabilities{"boot": {"secure"}}}, image: capabilities{"boot": {"legacy"}}},
		"the architecture of the pool counts":   {machineType: &corev1beta1.MachineType{Capabilities: capabilities{"architecture": {"amd64"}}}, image: capabilities{"architecture": {"arm64"}}, ranks: []int{1, 0}, ok: true},
		"a capability that the profile has not": {image: capabilities{"other": {"a"}}, ranks: []int{1, 0}, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			ranks, ok := Match(definitions, OfMachine(tc.machineType, "arm64"), tc.image)
			if diff := cmp.Diff(tc.ranks, ranks); diff != "" || ok != tc.ok {
				t.Errorf("Match() = %t, want %t; ranks (-want +got):\n%s", ok, tc.ok, diff)
			}
		})
	}
}
