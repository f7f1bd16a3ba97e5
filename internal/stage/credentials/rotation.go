package credentials

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// Progress is how far the rotation of one kind of credentials is.
type Progress struct {
	// Phase is empty if there was none, and for credentials that are replaced at once.
	Phase corev1beta1.CredentialsRotationPhase
	// Initiated is when it was started last. It may be nil.
	Initiated *metav1.Time
}

// Rotation is how far the rotations of a cluster are.
type Rotation struct {
	CertificateAuthorities, ServiceAccountKey, EncryptionKey, SSHKeyPair, Observability, WorkloadIdentityKey Progress
}

// RotationOfShoot returns the one in the status of a Shoot, which may be nil.
func RotationOfShoot(status *corev1beta1.ShootCredentials) Rotation {
	if status == nil || status.Rotation == nil {
		return Rotation{}
	}
	from := status.Rotation
	r := common(from.CertificateAuthorities, from.ServiceAccountKey, from.ETCDEncryptionKey, from.Observability)
	if from.SSHKeypair != nil {
		r.SSHKeyPair.Initiated = from.SSHKeypair.LastInitiationTime
	}
	return r
}

// RotationOfGarden returns the one in the status of a Garden, which may be nil.
func RotationOfGarden(status *operatorv1alpha1.Credentials) Rotation {
	if status == nil || status.Rotation == nil {
		return Rotation{}
	}
	from := status.Rotation
	r := common(from.CertificateAuthorities, from.ServiceAccountKey, from.ETCDEncryptionKey, from.Observability)
	if from.WorkloadIdentityKey != nil {
		r.WorkloadIdentityKey = Progress{from.WorkloadIdentityKey.Phase, from.WorkloadIdentityKey.LastInitiationTime}
	}
	return r
}

// common has what shoots and gardens rotate.
func common(
	ca *corev1beta1.CARotation, account *corev1beta1.ServiceAccountKeyRotation, encryption *corev1beta1.ETCDEncryptionKeyRotation,
	observability *corev1beta1.ObservabilityRotation,
) (r Rotation) {
	if ca != nil {
		r.CertificateAuthorities = Progress{ca.Phase, ca.LastInitiationTime}
	}
	if account != nil {
		r.ServiceAccountKey = Progress{account.Phase, account.LastInitiationTime}
	}
	if encryption != nil {
		r.EncryptionKey = Progress{encryption.Phase, encryption.LastInitiationTime}
	}
	if observability != nil {
		r.Observability.Initiated = observability.LastInitiationTime
	}
	return r
}
