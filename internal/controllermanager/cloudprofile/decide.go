package cloudprofile

import (
	"cmp"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/cloudprofile"
)

// classify returns how the versions of a profile are classified at a time, and when the first of them is classified differently; zero means
// never.
func classify(spec *corev1beta1.CloudProfileSpec, now time.Time) (status corev1beta1.CloudProfileStatus, recheckIn time.Duration) {
	all := func(versions []corev1beta1.ExpirableVersion) []corev1beta1.ExpirableVersionStatus {
		var classified []corev1beta1.ExpirableVersionStatus
		for _, version := range versions {
			classified = append(classified, corev1beta1.ExpirableVersionStatus{
				Version: version.Version, Classification: cmp.Or(version.ClassificationAt(now), corev1beta1.ClassificationSupported),
			})
			if in := nextChange(version, now); in > 0 && (recheckIn == 0 || in < recheckIn) {
				recheckIn = in
			}
		}
		return classified
	}
	if versions := all(spec.Kubernetes.Versions); len(versions) > 0 {
		status.Kubernetes = &corev1beta1.KubernetesStatus{Versions: versions}
	}
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		status.MachineImages = append(status.MachineImages, corev1beta1.MachineImageStatus{
			Name: image.Name, Versions: all(cloudprofile.ImageVersions(image)),
		})
	}
	return status, recheckIn
}

// nextChange returns when the next stage of a version begins, or the version expires. Zero means never.
func nextChange(version corev1beta1.ExpirableVersion, now time.Time) time.Duration {
	var next time.Duration
	consider := func(at time.Time) {
		if in := at.Sub(now); in > 0 && (next == 0 || in < next) {
			next = in
		}
	}
	if expiration := version.ExpirationDate; len(version.Lifecycle) == 0 && expiration != nil { //nolint:staticcheck // in use without a lifecycle
		consider(expiration.Time)
	}
	for _, stage := range version.Lifecycle {
		if stage.StartTime != nil {
			consider(stage.StartTime.Time)
		}
	}
	return next
}
