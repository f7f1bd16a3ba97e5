package extension

import (
	"maps"
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// ImageFlavor returns which flavour of a machine image machines of a type and an architecture boot from: the index of its capabilities, or -1 if none fits.
//
// A flavour fits if it shares a value of each capability in the CloudProfile with the machine type. What a flavour or a type leaves out, it has with all
// values. If several fit, the order in the CloudProfile says which is preferred: the capabilities in their order, and for each the first value that is shared.
// The first of equal flavours is taken. A CloudProfile without machineCapabilities only has the architecture. Source: nodes-and-autoscaling.md, section 3.3.
func ImageFlavor(profile *corev1beta1.CloudProfileSpec, machineType, architecture string, flavors []corev1beta1.Capabilities) int {
	definitions := profile.MachineCapabilities
	if len(definitions) == 0 {
		definitions = []corev1beta1.CapabilityDefinition{{Name: constants.ArchitectureName, Values: corev1beta1.CapabilityValues{architecture}}}
	}
	machine := corev1beta1.Capabilities{}
	if i := slices.IndexFunc(profile.MachineTypes, func(t corev1beta1.MachineType) bool { return t.Name == machineType }); i >= 0 {
		maps.Copy(machine, profile.MachineTypes[i].Capabilities)
	}
	machine[constants.ArchitectureName] = corev1beta1.CapabilityValues{architecture}
	best, bestRanks := -1, []int(nil)
	for i, flavor := range flavors {
		if ranks := sharedValues(definitions, machine, flavor); ranks != nil && (best < 0 || slices.Compare(ranks, bestRanks) < 0) {
			best, bestRanks = i, ranks
		}
	}
	return best
}

// sharedValues returns, for each capability, the index of the first value that a machine and an image share, or nil if there is one without.
func sharedValues(definitions []corev1beta1.CapabilityDefinition, machine, image corev1beta1.Capabilities) []int {
	ranks := make([]int, 0, len(definitions))
	for _, definition := range definitions {
		has := func(capabilities corev1beta1.Capabilities, value string) bool {
			values := capabilities[definition.Name]
			return len(values) == 0 || slices.Contains(values, value)
		}
		rank := slices.IndexFunc(definition.Values, func(value string) bool { return has(machine, value) && has(image, value) })
		if rank < 0 {
			return nil
		}
		ranks = append(ranks, rank)
	}
	return ranks
}
