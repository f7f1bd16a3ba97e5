package core

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func cloudProfile(options core.Options) *kind.Kind[corev1beta1.CloudProfile] {
	return &kind.Kind[corev1beta1.CloudProfile]{
		GroupVersionKind:    gvk("CloudProfile"),
		Plural:              "cloudprofiles",
		ShortNames:          []string{"cprofile", "cpfl"},
		HasStatus:           true,
		UnconditionalUpdate: true,

		PrepareForCreate: func(c *corev1beta1.CloudProfile) { removeUnusableVersions(&c.Spec, time.Now()) },
		PrepareForUpdate: removeCapabilities,
		Canonicalize:     fillArchitectures,
		Validate: func(c *corev1beta1.CloudProfile) field.ErrorList {
			return core.ValidateCloudProfile(c, time.Now(), options)
		},
		ValidateUpdate: func(c, old *corev1beta1.CloudProfile) field.ErrorList {
			return core.ValidateCloudProfileUpdate(c, old, time.Now(), options)
		},
		ValidateStatusUpdate: func(c, old *corev1beta1.CloudProfile) field.ErrorList {
			return core.ValidateStatusMetadata(&c.ObjectMeta, &old.ObjectMeta)
		},
		Columns: []kind.Column[corev1beta1.CloudProfile]{
			{
				Name: "Provider", Description: "Type of the provider.",
				Value: func(c *corev1beta1.CloudProfile) any { return c.Spec.Type },
			},
		},
	}
}

// removeUnusableVersions removes expired and unavailable versions from a new profile.
func removeUnusableVersions(spec *corev1beta1.CloudProfileSpec, now time.Time) {
	unusable := func(v corev1beta1.ExpirableVersion) bool {
		c := v.ClassificationAt(now)
		return c == corev1beta1.ClassificationExpired || c == corev1beta1.ClassificationUnavailable
	}
	spec.Kubernetes.Versions = slices.DeleteFunc(spec.Kubernetes.Versions, unusable)
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		image.Versions = slices.DeleteFunc(image.Versions, func(v corev1beta1.MachineImageVersion) bool { return unusable(v.ExpirableVersion) })
	}
}

// fillArchitectures sets the architectures of images and machine types both as a capability and in the field for clients that do not
// know capabilities. The profile was validated before.
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
		if ptr.Deref(machineType.Architecture, "") == "" {
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

// removeCapabilities removes the capabilities of images and machine types if the profile does not declare capabilities any more.
func removeCapabilities(profile, old *corev1beta1.CloudProfile) {
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
