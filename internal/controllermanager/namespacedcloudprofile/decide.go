package namespacedcloudprofile

import (
	"slices"
	"strings"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// merge returns the CloudProfileSpec that a profile and its parent result in:
//
//   - Kubernetes versions are those of the parent; the profile changes how long they are offered.
//   - Machine images and their versions come from both. Where both have a version, the profile changes how long it is offered; everything
//     else is the parent's. The update strategy of an image is the profile's if it has one.
//   - Machine types and volume types come from both. Where both have a type, it is the parent's.
//   - CA bundles come from both; limits are the profile's where it has some.
//   - Everything else, and the provider configuration, is the parent's. The provider's extension merges the latter.
//
// Kubernetes versions of the profile that the parent does not offer any more are ignored.
func merge(parent *corev1beta1.CloudProfileSpec, profile *corev1beta1.NamespacedCloudProfileSpec) *corev1beta1.CloudProfileSpec {
	merged, profile := parent.DeepCopy(), profile.DeepCopy()
	if profile.Kubernetes != nil {
		for _, version := range profile.Kubernetes.Versions {
			if i := find(merged.Kubernetes.Versions, version, versionName); i >= 0 {
				extend(&merged.Kubernetes.Versions[i], version)
			}
		}
	}
	for _, image := range profile.MachineImages {
		i := find(merged.MachineImages, image, func(m corev1beta1.MachineImage) string { return m.Name })
		if i < 0 {
			if image.UpdateStrategy == nil {
				image.UpdateStrategy = new(corev1beta1.UpdateStrategyMajor)
			}
			merged.MachineImages = append(merged.MachineImages, completeImage(image, merged.MachineCapabilities))
			continue
		}
		mergeImage(&merged.MachineImages[i], completeImage(image, merged.MachineCapabilities))
	}
	for _, machineType := range profile.MachineTypes {
		if find(merged.MachineTypes, machineType, func(m corev1beta1.MachineType) string { return m.Name }) < 0 {
			merged.MachineTypes = append(merged.MachineTypes, completeType(machineType, merged.MachineCapabilities))
		}
	}
	for _, volumeType := range profile.VolumeTypes {
		if find(merged.VolumeTypes, volumeType, func(v corev1beta1.VolumeType) string { return v.Name }) < 0 {
			merged.VolumeTypes = append(merged.VolumeTypes, volumeType)
		}
	}
	merged.CABundle = mergeBundles(merged.CABundle, profile.CABundle)
	if profile.Limits != nil && profile.Limits.MaxNodesTotal != nil {
		if merged.Limits == nil {
			merged.Limits = &corev1beta1.Limits{}
		}
		merged.Limits.MaxNodesTotal = profile.Limits.MaxNodesTotal
	}
	return merged
}

func mergeImage(image *corev1beta1.MachineImage, profile corev1beta1.MachineImage) {
	if profile.UpdateStrategy != nil {
		image.UpdateStrategy = profile.UpdateStrategy
	}
	for _, version := range profile.Versions {
		i := find(image.Versions, version, func(v corev1beta1.MachineImageVersion) string { return v.Version })
		if i < 0 {
			image.Versions = append(image.Versions, version)
			continue
		}
		extend(&image.Versions[i].ExpirableVersion, version.ExpirableVersion)
	}
}

// extend changes how long a version is offered.
func extend(version *corev1beta1.ExpirableVersion, profile corev1beta1.ExpirableVersion) {
	switch {
	case len(profile.Lifecycle) > 0:
		// It excludes the older fields, and expresses the same.
		version.Lifecycle, version.Classification, version.ExpirationDate = profile.Lifecycle, nil, nil //nolint:staticcheck // in use without a lifecycle
	case profile.ExpirationDate == nil: //nolint:staticcheck // as above
	case len(version.Lifecycle) == 0:
		version.ExpirationDate = profile.ExpirationDate //nolint:staticcheck // as above
	default:
		version.Lifecycle = slices.DeleteFunc(version.Lifecycle, func(stage corev1beta1.LifecycleStage) bool {
			return stage.Classification == corev1beta1.ClassificationExpired ||
				stage.StartTime != nil && !stage.StartTime.Before(profile.ExpirationDate) //nolint:staticcheck // as above
		})
		version.Lifecycle = append(version.Lifecycle, corev1beta1.LifecycleStage{
			Classification: corev1beta1.ClassificationExpired, StartTime: profile.ExpirationDate, //nolint:staticcheck // as above
		})
	}
}

// completeImage sets the defaults of an image of the profile. For an image of the parent, the API server does so.
func completeImage(image corev1beta1.MachineImage, capabilities []corev1beta1.CapabilityDefinition) corev1beta1.MachineImage {
	for i := range image.Versions {
		version := &image.Versions[i]
		if len(version.CRI) == 0 {
			version.CRI = []corev1beta1.CRI{{Name: corev1beta1.CRINameContainerD}}
		}
		switch {
		case len(capabilities) == 0:
			if len(version.Architectures) == 0 {
				version.Architectures = []string{constants.ArchitectureAMD64}
			}
		case len(version.CapabilityFlavors) == 0:
			// A profile that is older than the capabilities of its parent has architectures instead.
			for _, architecture := range version.Architectures {
				version.CapabilityFlavors = append(version.CapabilityFlavors, corev1beta1.MachineImageFlavor{
					Capabilities: corev1beta1.Capabilities{constants.ArchitectureName: {architecture}},
				})
			}
		}
	}
	return image
}

// completeType does the same for a machine type.
func completeType(machineType corev1beta1.MachineType, capabilities []corev1beta1.CapabilityDefinition) corev1beta1.MachineType {
	switch {
	case len(capabilities) == 0:
		if machineType.Architecture == nil {
			machineType.Architecture = new(constants.ArchitectureAMD64)
		}
	case machineType.Architecture != nil && len(machineType.Capabilities[constants.ArchitectureName]) == 0:
		if machineType.Capabilities == nil {
			machineType.Capabilities = corev1beta1.Capabilities{}
		}
		machineType.Capabilities[constants.ArchitectureName] = corev1beta1.CapabilityValues{*machineType.Architecture}
	}
	return machineType
}

// mergeBundles concatenates two CA bundles.
func mergeBundles(parent, profile *string) *string {
	switch {
	case profile == nil || *profile == "":
		return parent
	case parent == nil || *parent == "":
		return profile
	}
	return new(strings.TrimRight(*parent, "\n") + "\n" + *profile)
}

func versionName(v corev1beta1.ExpirableVersion) string { return v.Version }

// find returns the index of the element of the same name in a list, or -1.
func find[T any](list []T, like T, name func(T) string) int {
	return slices.IndexFunc(list, func(t T) bool { return name(t) == name(like) })
}
