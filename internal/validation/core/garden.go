package core

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// KubeAPIServer checks the settings that the kube-apiserver of a garden has in common with that of a shoot. A garden has no workers.
func KubeAPIServer(config *corev1beta1.KubeAPIServerConfig, version string, path *field.Path) field.ErrorList {
	return kubeAPIServer(config, &corev1beta1.ShootSpec{}, parseVersion(version), path)
}

// KubeControllerManager checks the settings that the kube-controller-manager of a garden has in common with that of a shoot. A garden
// has no nodes.
func KubeControllerManager(config *corev1beta1.KubeControllerManagerConfig, version string, path *field.Path) field.ErrorList {
	return kubeControllerManager(config, &corev1beta1.ShootSpec{}, parseVersion(version), path)
}

// EncryptionConfig checks which resources are encrypted at rest, and how.
func EncryptionConfig(config *corev1beta1.EncryptionConfig, path *field.Path) field.ErrorList {
	return encryptionConfig(config, path)
}
