// Package rotation has the phases of a rotation of credentials with two steps, for Shoots and Gardens. Between them, old and new credentials are both
// valid. Source: docs/credentials.md.
package rotation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Phased refers to the fields of a status that rotations with two steps have in common.
type Phased struct {
	Phase                                               *corev1beta1.CredentialsRotationPhase
	Initiated, Prepared, CompletionTriggered, Completed **metav1.Time
	// Pending are the worker pools whose machines are yet to be replaced. It may be nil.
	Pending *[]corev1beta1.PendingWorkersRollout
}

// OfCAs refers to the rotation of CAs.
func OfCAs(r *corev1beta1.CARotation) Phased {
	return Phased{
		&r.Phase, &r.LastInitiationTime, &r.LastInitiationFinishedTime, &r.LastCompletionTriggeredTime, &r.LastCompletionTime, &r.PendingWorkersRollouts,
	}
}

// OfServiceAccountKey refers to the rotation of the key that signs tokens of ServiceAccounts.
func OfServiceAccountKey(r *corev1beta1.ServiceAccountKeyRotation) Phased {
	return Phased{
		&r.Phase, &r.LastInitiationTime, &r.LastInitiationFinishedTime, &r.LastCompletionTriggeredTime, &r.LastCompletionTime, &r.PendingWorkersRollouts,
	}
}

// OfEncryptionKey refers to the rotation of the key that data in etcd is encrypted with.
func OfEncryptionKey(r *corev1beta1.ETCDEncryptionKeyRotation) Phased {
	return Phased{
		&r.Phase, &r.LastInitiationTime, &r.LastInitiationFinishedTime, &r.LastCompletionTriggeredTime, &r.LastCompletionTime, nil,
	}
}

// Start begins a rotation with a phase, unless one is not completed yet. Waiting are the pools whose machines are replaced later.
func (p Phased) Start(now metav1.Time, to corev1beta1.CredentialsRotationPhase, waiting ...corev1beta1.Worker) {
	if *p.Phase != "" && *p.Phase != corev1beta1.RotationCompleted {
		return
	}
	if p.Pending != nil {
		*p.Pending = nil
		for _, pool := range waiting { // until its rollout, its machines have the credentials of the rotation before
			*p.Pending = append(*p.Pending, corev1beta1.PendingWorkersRollout{Name: pool.Name, LastInitiationTime: *p.Initiated})
		}
	}
	*p.Phase, *p.Initiated, *p.Prepared, *p.CompletionTriggered = to, &now, nil, nil
}

// Complete begins the second step of a rotation that is prepared.
func (p Phased) Complete(now metav1.Time) {
	if *p.Phase == corev1beta1.RotationPrepared {
		*p.Phase, *p.CompletionTriggered = corev1beta1.RotationCompleting, &now
	}
}

// Advance records the end of a flow: the step that had begun is done.
func (p Phased) Advance(now metav1.Time) {
	switch *p.Phase {
	case corev1beta1.RotationPreparing:
		*p.Phase, *p.Prepared = corev1beta1.RotationPrepared, &now
	case corev1beta1.RotationPreparingWithoutWorkersRollout, corev1beta1.RotationWaitingForWorkersRollout:
		*p.Phase = corev1beta1.RotationWaitingForWorkersRollout
		if p.Pending == nil || len(*p.Pending) == 0 {
			*p.Phase, *p.Prepared = corev1beta1.RotationPrepared, &now
		}
	case corev1beta1.RotationCompleting:
		*p.Phase, *p.Completed, *p.Prepared, *p.CompletionTriggered = corev1beta1.RotationCompleted, &now, nil, nil
	case corev1beta1.RotationCompleted:
		*p.CompletionTriggered = nil
	case corev1beta1.RotationPrepared:
	}
}
