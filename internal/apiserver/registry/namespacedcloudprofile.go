package registry

import (
	"slices"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// dropExpired takes out of a new profile what has expired already, and images that say nothing then.
func dropExpired(spec *corev1beta1.NamespacedCloudProfileSpec, now time.Time) {
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

// canonicalNamespacedCloudProfile makes sure that there is a merged profile, even if nobody has merged anything into it yet: clients
// read it without looking.
func canonicalNamespacedCloudProfile(profile *corev1beta1.NamespacedCloudProfile) {
	if profile.Status.CloudProfileSpec == nil {
		profile.Status.CloudProfileSpec = &corev1beta1.CloudProfileSpec{}
	}
}
