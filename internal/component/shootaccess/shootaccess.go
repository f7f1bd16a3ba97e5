// Package shootaccess gives pods of a control plane access to the shoot: the generic token kubeconfig that all of them share, and a token of their
// own, which the token requestor in the shoot's gardener-resource-manager renews.
package shootaccess

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

const (
	// MountPath is the mount path of the volume.
	MountPath = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
	// PathKubeconfig and PathToken are the files in it.
	PathKubeconfig, PathToken = MountPath + "/kubeconfig", MountPath + "/token"

	// secretPrefix is the prefix of names of Secrets with tokens.
	secretPrefix = "shoot-access-"
	volumeName   = "kubeconfig"
)

// SecretName returns the name of the Secret with the token of a component.
func SecretName(component string) string { return secretPrefix + component }

// Secret renders the request for a token: a Secret that the token requestor fills. The ServiceAccount is in kube-system of the shoot
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

// Volume is a volume with the generic token kubeconfig and the token of a component. Pods do not start before the Secret has a
// token.
func Volume(genericKubeconfigSecret, component string) corev1.Volume {
	return volume(
		projection(genericKubeconfigSecret, resourcesv1alpha1.DataKeyKubeconfig),
		projection(SecretName(component), resourcesv1alpha1.DataKeyToken),
	)
}

func volume(sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
}

func projection(secret, key string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: []corev1.KeyToPath{{Key: key, Path: key}}, Optional: new(false),
	}}
}

// Mount is the volume mount of a container.
func Mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: volumeName, MountPath: MountPath, ReadOnly: true}
}
