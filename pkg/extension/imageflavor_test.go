package extension

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestImageFlavor(t *testing.T) {
	type capabilities = corev1beta1.Capabilities
	defined := []corev1beta1.CapabilityDefinition{
		{Name: "architecture", Values: []string{"amd64", "arm64"}}, {Name: "gpu", Values: []string{"none", "new", "old"}}, {Name: "boot", Values: []string{"secure", "plain"}},
	}
	types := []corev1beta1.MachineType{
		{Name: "any"},
		{Name: "gpu", Capabilities: capabilities{"gpu": {"old", "new"}}},
		{Name: "plain", Capabilities: capabilities{"gpu": {"none"}, "boot": {"plain"}}},
	}
	for name, tc := range map[string]struct {
		definitions               []corev1beta1.CapabilityDefinition
		machineType, architecture string
		flavors                   []capabilities
		want                      int
	}{
		"no flavour":                               {defined, "any", "amd64", nil, -1},
		"a flavour that leaves all out":            {defined, "gpu", "arm64", []capabilities{{}}, 0},
		"the architecture":                         {defined, "any", "arm64", []capabilities{{"architecture": {"amd64"}}, {"architecture": {"arm64"}}}, 1},
		"the architecture, without capabilities":   {nil, "any", "arm64", []capabilities{{"architecture": {"amd64"}}, {"architecture": {"arm64"}, "gpu": {"old"}}}, 1},
		"another architecture":                     {defined, "any", "arm64", []capabilities{{"architecture": {"amd64"}}}, -1},
		"what the type does not support":           {defined, "gpu", "amd64", []capabilities{{"gpu": {"none"}}, {"gpu": {"old"}}}, 1},
		"nothing that the type supports":           {defined, "gpu", "amd64", []capabilities{{"gpu": {"none"}}}, -1},
		"the preferred value":                      {defined, "gpu", "amd64", []capabilities{{"gpu": {"old"}}, {"gpu": {"new", "old"}}}, 1},
		"a preferred value that the type has not":  {defined, "plain", "amd64", []capabilities{{"boot": {"secure"}}, {"boot": {"plain"}}}, 1},
		"the first capability counts first":        {defined, "any", "amd64", []capabilities{{"gpu": {"old"}, "boot": {"secure"}}, {"gpu": {"none"}, "boot": {"plain"}}}, 1},
		"the first of equal ones":                  {defined, "any", "amd64", []capabilities{{"gpu": {"none"}}, {}}, 0},
		"a type that the profile does not have":    {defined, "other", "amd64", []capabilities{{"gpu": {"old"}}}, 0},
		"a value that the profile does not define": {defined, "any", "amd64", []capabilities{{"gpu": {"ancient"}}}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			profile := &corev1beta1.CloudProfileSpec{MachineCapabilities: tc.definitions, MachineTypes: types}
			if got := ImageFlavor(profile, tc.machineType, tc.architecture, tc.flavors); got != tc.want {
				t.Errorf("ImageFlavor() = %d, want %d", got, tc.want)
			}
			if len(types[1].Capabilities) != 1 {
				t.Error("the machine type is changed")
			}
		})
	}
}
