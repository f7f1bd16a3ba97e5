package core

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// featureGates checks the feature gates of Kubernetes components.
func featureGates(gates map[string]bool, version kubeVersion, path *field.Path) field.ErrorList {
	return nil
}

// runtimeConfig checks which API groups and versions are turned on or off.
func runtimeConfig(config map[string]bool, version kubeVersion, workerless bool, path *field.Path) field.ErrorList {
	return nil
}

// admissionPlugins checks which admission plugins are turned on or off.
func admissionPlugins(plugins []corev1beta1.AdmissionPlugin, version kubeVersion, path *field.Path) field.ErrorList {
	return nil
}
