package registry

import (
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// fillArchitectures says the architectures of images and machines in both ways, once that is known to be valid: as a capability, and
// in the field for clients that know no capabilities.
func fillArchitectures(profile *corev1beta1.CloudProfile) {
	if len(profile.Spec.MachineCapabilities) == 0 {
		return
	}
	for i := range profile.Spec.MachineImages {
		for j := range profile.Spec.MachineImages[i].Versions {
			version := &profile.Spec.MachineImages[i].Versions[j]
			if len(version.Architectures) > 0 {
				continue
			}
			for _, flavor := range version.CapabilityFlavors {
				for _, architecture := range flavor.Capabilities[constants.ArchitectureName] {
					if !slices.Contains(version.Architectures, architecture) {
						version.Architectures = append(version.Architectures, architecture)
					}
				}
			}
		}
	}
	for i := range profile.Spec.MachineTypes {
		machineType := &profile.Spec.MachineTypes[i]
		declared := machineType.Capabilities[constants.ArchitectureName]
		if get(machineType.Architecture) == "" {
			architecture := constants.ArchitectureAMD64
			if len(declared) > 0 {
				architecture = declared[0]
			}
			machineType.Architecture = &architecture
		}
		if len(declared) == 0 {
			if machineType.Capabilities == nil {
				machineType.Capabilities = corev1beta1.Capabilities{}
			}
			machineType.Capabilities[constants.ArchitectureName] = corev1beta1.CapabilityValues{*machineType.Architecture}
		}
	}
}

// dropCapabilities takes the capabilities off images and machines of a profile that gives them up.
func dropCapabilities(profile, old *corev1beta1.CloudProfile) {
	if len(profile.Spec.MachineCapabilities) > 0 || len(old.Spec.MachineCapabilities) == 0 {
		return
	}
	for i := range profile.Spec.MachineImages {
		for j := range profile.Spec.MachineImages[i].Versions {
			profile.Spec.MachineImages[i].Versions[j].CapabilityFlavors = nil
		}
	}
	for i := range profile.Spec.MachineTypes {
		profile.Spec.MachineTypes[i].Capabilities = nil
	}
}
