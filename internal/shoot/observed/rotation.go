package observed

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
)

// PreparesServiceAccountKey reports whether this run changes by which key tokens are signed.
func (s *State) PreparesServiceAccountKey() bool {
	key := Rotation(s.Shoot).ServiceAccountKey
	return key != nil && (key.Phase == corev1beta1.RotationPreparing || key.Phase == corev1beta1.RotationPreparingWithoutWorkersRollout)
}

// CompletesServiceAccountKey reports whether this run ends the trust in the old key of tokens.
func (s *State) CompletesServiceAccountKey() bool {
	key := Rotation(s.Shoot).ServiceAccountKey
	return key != nil && key.Phase == corev1beta1.RotationCompleting
}

// ReplacesCAs reports whether this run changes which CAs etcd, its clients and nodes trust.
func (s *State) ReplacesCAs() bool {
	ca := Rotation(s.Shoot).CertificateAuthorities
	if ca == nil {
		return false
	}
	switch ca.Phase {
	case corev1beta1.RotationPreparing, corev1beta1.RotationPreparingWithoutWorkersRollout, corev1beta1.RotationCompleting:
		return true
	case corev1beta1.RotationWaitingForWorkersRollout, corev1beta1.RotationPrepared, corev1beta1.RotationCompleted:
	}
	return false
}

// EncryptionKey returns the rotation of the encryption key of etcd. Its phase is empty if there was none.
func (s *State) EncryptionKey() corev1beta1.ETCDEncryptionKeyRotation {
	return ptr.Deref(Rotation(s.Shoot).ETCDEncryptionKey, corev1beta1.ETCDEncryptionKeyRotation{})
}

// PreparesEncryptionKey reports whether this run changes by which key data at rest is encrypted.
func (s *State) PreparesEncryptionKey() bool {
	return s.EncryptionKey().Phase == corev1beta1.RotationPreparing
}

// Rotation returns the rotations in the status of a shoot.
func Rotation(shoot *corev1beta1.Shoot) corev1beta1.ShootCredentialsRotation {
	if c := shoot.Status.Credentials; c != nil && c.Rotation != nil {
		return *c.Rotation
	}
	return corev1beta1.ShootCredentialsRotation{}
}

// PoolRotation returns when credentials were rotated that the machines of a worker pool have. No name stands for a pool whose rollout is
// not pending.
func PoolRotation(shoot *corev1beta1.Shoot, pool string) operatingsystemconfig.Rotation {
	var r operatingsystemconfig.Rotation
	if m := shoot.Status.ManualWorkerPoolRollout; m != nil {
		r.Rollout = InitiationTime(pool, nil, m.PendingWorkersRollouts)
	}
	rotation := Rotation(shoot)
	if ca := rotation.CertificateAuthorities; ca != nil {
		r.CertificateAuthorities = InitiationTime(pool, ca.LastInitiationTime, ca.PendingWorkersRollouts)
	}
	if key := rotation.ServiceAccountKey; key != nil {
		r.ServiceAccountKey = InitiationTime(pool, key.LastInitiationTime, key.PendingWorkersRollouts)
	}
	return r
}

// InitiationTime returns when the rotation began whose credentials the machines of a worker pool have: the last one, but for pools whose
// rollout is pending.
func InitiationTime(pool string, last *metav1.Time, pending []corev1beta1.PendingWorkersRollout) *metav1.Time {
	if i := slices.IndexFunc(pending, func(p corev1beta1.PendingWorkersRollout) bool { return p.Name == pool }); i >= 0 {
		return pending[i].LastInitiationTime
	}
	return last
}
