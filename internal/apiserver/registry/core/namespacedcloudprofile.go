package core

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func namespacedCloudProfile(options core.Options) *kind.Kind[corev1beta1.NamespacedCloudProfile] {
	return &kind.Kind[corev1beta1.NamespacedCloudProfile]{
		GroupVersionKind:    gvk("NamespacedCloudProfile"),
		Plural:              "namespacedcloudprofiles",
		ShortNames:          []string{"nsprofile", "nscpfl"},
		Namespaced:          true,
		HasStatus:           true,
		HasGeneration:       true,
		UnconditionalUpdate: true,

		PrepareForCreate: func(n *corev1beta1.NamespacedCloudProfile) { removeExpiredVersions(&n.Spec, time.Now()) },
		Canonicalize:     setMergedProfile,
		Validate: func(n *corev1beta1.NamespacedCloudProfile) field.ErrorList {
			return core.ValidateNamespacedCloudProfile(n, options)
		},
		ValidateUpdate: func(n, old *corev1beta1.NamespacedCloudProfile) field.ErrorList {
			return core.ValidateNamespacedCloudProfileUpdate(n, old, options)
		},
		Columns: []kind.Column[corev1beta1.NamespacedCloudProfile]{
			{
				Name: "Parent Name", Description: "Profile that this one extends.",
				Value: func(n *corev1beta1.NamespacedCloudProfile) any { return n.Spec.Parent.Name },
			},
			{
				Name: "Parent Kind", Description: "Kind of the profile that this one extends.",
				Value: func(n *corev1beta1.NamespacedCloudProfile) any { return n.Spec.Parent.Kind },
			},
		},
	}
}

// removeExpiredVersions removes expired versions from a new profile, and images that have nothing else.
func removeExpiredVersions(spec *corev1beta1.NamespacedCloudProfileSpec, now time.Time) {
	expired := func(v corev1beta1.ExpirableVersion) bool {
		return v.ClassificationAt(now) == corev1beta1.ClassificationExpired
	}
	if spec.Kubernetes != nil {
		spec.Kubernetes.Versions = slices.DeleteFunc(spec.Kubernetes.Versions, expired)
	}
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		image.Versions = slices.DeleteFunc(image.Versions, func(v corev1beta1.MachineImageVersion) bool { return expired(v.ExpirableVersion) })
		if len(image.Versions) == 0 {
			image.Versions = nil
		}
	}
	spec.MachineImages = slices.DeleteFunc(spec.MachineImages, func(image corev1beta1.MachineImage) bool {
		return len(image.Versions) == 0 && image.UpdateStrategy == nil
	})
}

// setMergedProfile sets an empty status.cloudProfileSpec until the controller has merged the profile: clients expect it.
func setMergedProfile(profile *corev1beta1.NamespacedCloudProfile) {
	if profile.Status.CloudProfileSpec == nil {
		profile.Status.CloudProfileSpec = &corev1beta1.CloudProfileSpec{}
	}
}
