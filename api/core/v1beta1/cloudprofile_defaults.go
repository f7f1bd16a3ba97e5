package v1beta1

import "gardener.cloud/gardener/api/core/v1beta1/constants"

// DefaultCloudProfile fills in the defaults of a CloudProfile.
func DefaultCloudProfile(profile *CloudProfile) {
	architecture := len(profile.Spec.MachineCapabilities) == 0
	for i := range profile.Spec.MachineImages {
		image := &profile.Spec.MachineImages[i]
		setDefault(&image.UpdateStrategy, UpdateStrategyMajor)
		for j := range image.Versions {
			version := &image.Versions[j]
			if len(version.CRI) == 0 {
				version.CRI = []CRI{{Name: CRINameContainerD}}
			}
			if architecture && len(version.Architectures) == 0 {
				version.Architectures = []string{constants.ArchitectureAMD64}
			}
		}
	}
	for i := range profile.Spec.MachineTypes {
		machineType := &profile.Spec.MachineTypes[i]
		setDefault(&machineType.Usable, true)
		if architecture {
			setDefault(&machineType.Architecture, constants.ArchitectureAMD64)
		}
	}
	defaultVolumeTypes(profile.Spec.VolumeTypes)
}

// DefaultNamespacedCloudProfile fills in the defaults of a NamespacedCloudProfile. What machine images leave out comes
// from the parent, so it has no default here.
func DefaultNamespacedCloudProfile(profile *NamespacedCloudProfile) {
	for i := range profile.Spec.MachineTypes {
		setDefault(&profile.Spec.MachineTypes[i].Usable, true)
	}
	defaultVolumeTypes(profile.Spec.VolumeTypes)
}

func defaultVolumeTypes(volumeTypes []VolumeType) {
	for i := range volumeTypes {
		setDefault(&volumeTypes[i].Usable, true)
	}
}
