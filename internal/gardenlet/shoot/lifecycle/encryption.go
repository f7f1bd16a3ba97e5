package lifecycle

import (
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// encryptedResources are what is to be encrypted at rest besides secrets, and what was and shall no longer be.
func encryptedResources(shoot *corev1beta1.Shoot) (wanted, former []string) {
	if c := shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.EncryptionConfig != nil {
		wanted = c.EncryptionConfig.Resources
	}
	if before := encryptionBefore(shoot); before != nil {
		former = without(before.Resources, wanted)
	}
	return wanted, former
}

// addedResources are what is to be encrypted and was not at the end of the last operation. In a cluster that is made, nothing is stored yet.
func addedResources(shoot *corev1beta1.Shoot) []string {
	before := encryptionBefore(shoot)
	if before == nil {
		return nil
	}
	wanted, _ := encryptedResources(shoot)
	return without(wanted, before.Resources)
}

func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// encryptionBefore is how the cluster was encrypted at the end of the last operation. It is nil if there was none.
func encryptionBefore(shoot *corev1beta1.Shoot) *corev1beta1.EncryptionAtRest {
	if c := shoot.Status.Credentials; c != nil {
		return c.EncryptionAtRest
	}
	return nil
}

// changesEncryption is whether some of what is stored has to be written again, as it is to be encrypted or no longer so.
func changesEncryption(shoot *corev1beta1.Shoot) bool {
	_, former := encryptedResources(shoot)
	return len(former) > 0 || len(addedResources(shoot)) > 0
}

// recordEncryption writes into the status what is encrypted at the end of an operation.
func recordEncryption(shoot *corev1beta1.Shoot, w *world) {
	if w.sleeps() && encryptionBefore(shoot) != nil {
		return // nothing was written again
	}
	wanted, _ := encryptedResources(w.shoot)
	if shoot.Status.Credentials == nil {
		shoot.Status.Credentials = &corev1beta1.ShootCredentials{}
	}
	shoot.Status.Credentials.EncryptionAtRest = &corev1beta1.EncryptionAtRest{
		Resources: slices.Clone(wanted), Provider: corev1beta1.EncryptionProviderStatus{Type: encryptionProvider(w.shoot)},
	}
}

// encryptionProvider is how a cluster is encrypted at rest.
func encryptionProvider(shoot *corev1beta1.Shoot) corev1beta1.EncryptionProviderType {
	if c := shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.EncryptionConfig != nil && deref(c.EncryptionConfig.Provider.Type) != "" {
		return *c.EncryptionConfig.Provider.Type
	}
	return corev1beta1.EncryptionProviderTypeAESCBC
}
