// Package shootaccess gives pods of a control plane access to the shoot: a kubeconfig that all of them share, and a token of their
// own, which the token requestor in the shoot's gardener-resource-manager keeps fresh.
package shootaccess

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

const (
	// MountPath is where the volume is in containers.
	MountPath = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
	// PathKubeconfig and PathToken are the files in it.
	PathKubeconfig, PathToken = MountPath + "/kubeconfig", MountPath + "/token"

	// secretPrefix starts the names of the Secrets with tokens.
	secretPrefix = "shoot-access-"
	volumeName   = "kubeconfig"
)

// SecretName returns the name of the Secret with the token of a component.
func SecretName(component string) string { return secretPrefix + component }

// Secret renders the order for a token. Its data is filled by the token requestor. The ServiceAccount is in kube-system of the shoot
// and has the name of the component.
func Secret(namespace, component string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: SecretName(component),
			Labels: map[string]string{
				resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
				resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassShoot,
			},
			Annotations: map[string]string{
				resourcesv1alpha1.ServiceAccountName: component, resourcesv1alpha1.ServiceAccountNamespace: metav1.NamespaceSystem,
			},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// Volume has the kubeconfig that a Secret has, which is shared by all components, beside the token of one. Pods do not start before
// there is a token.
func Volume(genericKubeconfigSecret, component string) corev1.Volume {
	return volume(
		projection(genericKubeconfigSecret, resourcesv1alpha1.DataKeyKubeconfig),
		projection(SecretName(component), resourcesv1alpha1.DataKeyToken),
	)
}

// BootstrapVolume has a kubeconfig with credentials of its own at the same place, for who starts before there are tokens.
func BootstrapVolume(kubeconfigSecret string) corev1.Volume {
	return volume(projection(kubeconfigSecret, resourcesv1alpha1.DataKeyKubeconfig))
}

func volume(sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
}

func projection(secret, key string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: []corev1.KeyToPath{{Key: key, Path: key}}, Optional: new(false),
	}}
}

// Mount puts the volume into a container.
func Mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: volumeName, MountPath: MountPath, ReadOnly: true}
}
