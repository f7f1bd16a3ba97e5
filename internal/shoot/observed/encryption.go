package observed

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// EncryptedResources returns what is to be encrypted at rest besides secrets, and what was and is no longer to be.
func EncryptedResources(shoot *corev1beta1.Shoot) (desired, former []string) {
	if c := shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.EncryptionConfig != nil {
		desired = c.EncryptionConfig.Resources
	}
	if before := encryptionBefore(shoot); before != nil {
		former = Without(before.Resources, desired)
	}
	return desired, former
}

// AddedResources returns what is to be encrypted at rest and was not at the end of the last operation. For a new cluster there are none, as
// nothing is stored yet.
func AddedResources(shoot *corev1beta1.Shoot) []string {
	before := encryptionBefore(shoot)
	if before == nil {
		return nil
	}
	desired, _ := EncryptedResources(shoot)
	return Without(desired, before.Resources)
}

// Without returns the names that are not among others.
func Without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// encryptionBefore is the encryption at the end of the last operation. It is nil if there was none.
func encryptionBefore(shoot *corev1beta1.Shoot) *corev1beta1.EncryptionAtRest {
	if c := shoot.Status.Credentials; c != nil {
		return c.EncryptionAtRest
	}
	return nil
}

// ChangesEncryption reports whether some of the stored data has to be rewritten, as it is to be encrypted or no longer so.
func ChangesEncryption(shoot *corev1beta1.Shoot) bool {
	_, former := EncryptedResources(shoot)
	return len(former) > 0 || len(AddedResources(shoot)) > 0
}

// EncryptsMore reports whether, after this run, some data is encrypted that a kube-apiserver of before could not read.
func (s *State) EncryptsMore() bool {
	return s.PreparesEncryptionKey() || len(AddedResources(s.Shoot)) > 0
}

// RecordEncryption writes into a status what is encrypted at the end of an operation. In a hibernated cluster nothing was rewritten.
func (s *State) RecordEncryption(shoot *corev1beta1.Shoot) {
	if s.Hibernated() && encryptionBefore(shoot) != nil {
		return
	}
	desired, _ := EncryptedResources(s.Shoot)
	if shoot.Status.Credentials == nil {
		shoot.Status.Credentials = &corev1beta1.ShootCredentials{}
	}
	shoot.Status.Credentials.EncryptionAtRest = &corev1beta1.EncryptionAtRest{
		Resources: slices.Clone(desired), Provider: corev1beta1.EncryptionProviderStatus{Type: encryptionProvider(s.Shoot)},
	}
}

// encryptionProvider is the provider that encrypts data at rest.
func encryptionProvider(shoot *corev1beta1.Shoot) corev1beta1.EncryptionProviderType {
	var provider corev1beta1.EncryptionProviderType
	if c := shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.EncryptionConfig != nil {
		provider = ptr.Deref(c.EncryptionConfig.Provider.Type, "")
	}
	return cmp.Or(provider, corev1beta1.EncryptionProviderTypeAESCBC)
}
