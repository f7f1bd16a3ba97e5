package extension

import (
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/capability"
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
	var known *corev1beta1.MachineType
	if i := slices.IndexFunc(profile.MachineTypes, func(t corev1beta1.MachineType) bool { return t.Name == machineType }); i >= 0 {
		known = &profile.MachineTypes[i]
	}
	machine := capability.OfMachine(known, architecture)
	best, bestRanks := -1, []int(nil)
	for i, flavor := range flavors {
		if ranks, ok := capability.Match(definitions, machine, flavor); ok && (best < 0 || slices.Compare(ranks, bestRanks) < 0) {
			best, bestRanks = i, ranks
		}
	}
	return best
}
