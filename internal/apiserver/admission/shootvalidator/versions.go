package shootvalidator

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// versions checks that Kubernetes versions which are new to the shoot are offered. Present versions may stay.
func versions(in *input) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	offered := usable(in.profile.Kubernetes.Versions, in.now)
	if version := in.shoot.Spec.Kubernetes.Version; version != in.old.Spec.Kubernetes.Version {
		errs = append(errs, oneOf(version, offered, path.Child("kubernetes", "version"))...)
	}
	for i := range in.shoot.Spec.Provider.Workers {
		worker := &in.shoot.Spec.Provider.Workers[i]
		if worker.Kubernetes == nil || worker.Kubernetes.Version == nil || *worker.Kubernetes.Version == in.shoot.Spec.Kubernetes.Version {
			continue
		}
		if before := pool(in.old, worker.Name); before == nil || kubeletVersion(in.old, before) != *worker.Kubernetes.Version {
			path := path.Child("provider", "workers").Index(i).Child("kubernetes", "version")
			errs = append(errs, oneOf(*worker.Kubernetes.Version, offered, path)...)
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
