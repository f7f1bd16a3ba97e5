// Package capability matches what a machine type has with what a machine image is made for, by the capabilities that a CloudProfile defines.
//
// What a type or an image leaves out, it has with all values. Source: nodes-and-autoscaling.md, section 3.3.
package capability

import (
	"maps"
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// OfMachine returns the capabilities of machines of a type, which may be nil, and an architecture.
func OfMachine(machineType *corev1beta1.MachineType, architecture string) corev1beta1.Capabilities {
	machine := corev1beta1.Capabilities{}
	if machineType != nil {
		maps.Copy(machine, machineType.Capabilities)
	}
	machine[constants.ArchitectureName] = corev1beta1.CapabilityValues{architecture}
	return machine
}

// Match reports whether a machine and an image share a value of each capability. The ranks are, for each capability in the order of the CloudProfile, the
// index of the first value that is shared: of two images that match, the one with the smaller ranks is preferred.
func Match(definitions []corev1beta1.CapabilityDefinition, machine, image corev1beta1.Capabilities) (ranks []int, ok bool) {
	for _, definition := range definitions {
		rank := slices.IndexFunc(definition.Values, func(value string) bool {
			return has(machine, definition.Name, value) && has(image, definition.Name, value)
		})
		if rank < 0 {
			return nil, false
		}
		ranks = append(ranks, rank)
	}
	return ranks, true
}

func has(capabilities corev1beta1.Capabilities, name, value string) bool {
	values := capabilities[name]
	return len(values) == 0 || slices.Contains(values, value)
}
