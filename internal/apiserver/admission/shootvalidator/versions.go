package shootvalidator

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// versions checks that Kubernetes versions which are new to the shoot are offered. Present versions may stay. Shoots and pools that exist may also be
// updated to a version that has expired: minor versions cannot be skipped, and those in between may all have expired.
func versions(in *input) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	offered := usable(in.profile.Kubernetes.Versions, in.now)
	forUpdates := slices.Concat(offered, expired(in.profile.Kubernetes.Versions, in.now))
	if version := in.shoot.Spec.Kubernetes.Version; in.isNew {
		errs = append(errs, oneOf(version, offered, path.Child("kubernetes", "version"))...)
	} else if version != in.old.Spec.Kubernetes.Version {
		errs = append(errs, oneOf(version, forUpdates, path.Child("kubernetes", "version"))...)
	}
	for i := range in.shoot.Spec.Provider.Workers {
		worker := &in.shoot.Spec.Provider.Workers[i]
		if worker.Kubernetes == nil || worker.Kubernetes.Version == nil || *worker.Kubernetes.Version == in.shoot.Spec.Kubernetes.Version {
			continue
		}
		path := path.Child("provider", "workers").Index(i).Child("kubernetes", "version")
		switch before := pool(in.old, worker.Name); {
		case before == nil:
			errs = append(errs, oneOf(*worker.Kubernetes.Version, offered, path)...)
		case kubeletVersion(in.old, before) != *worker.Kubernetes.Version:
			errs = append(errs, oneOf(*worker.Kubernetes.Version, forUpdates, path)...)
		}
	}
	return errs
}

// usable returns the versions that are available and have not expired.
func usable(versions []corev1beta1.ExpirableVersion, now time.Time) []string {
	var out []string
	for _, version := range versions {
		switch version.ClassificationAt(now) {
		case corev1beta1.ClassificationExpired, corev1beta1.ClassificationUnavailable:
		default:
			out = append(out, version.Version)
		}
	}
	return out
}

// expired returns the versions that have expired.
func expired(versions []corev1beta1.ExpirableVersion, now time.Time) []string {
	var out []string
	for _, version := range versions {
		if version.ClassificationAt(now) == corev1beta1.ClassificationExpired {
			out = append(out, version.Version)
		}
	}
	return out
}

// pool returns the worker pool of a name, or nil.
func pool(shoot *corev1beta1.Shoot, name string) *corev1beta1.Worker {
	for i := range shoot.Spec.Provider.Workers {
		if shoot.Spec.Provider.Workers[i].Name == name {
			return &shoot.Spec.Provider.Workers[i]
		}
	}
	return nil
}

// kubeletVersion returns the Kubernetes version of a pool.
func kubeletVersion(shoot *corev1beta1.Shoot, worker *corev1beta1.Worker) string {
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		return *worker.Kubernetes.Version
	}
	return shoot.Spec.Kubernetes.Version
}
