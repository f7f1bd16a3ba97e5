package lifecycle

import (
	"context"
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/flow"
)

// readinessTasks only wait. A shoot with the annotation ShootSkipReadiness does without them.
var readinessTasks = []string{
	"etcd-main-ready", "etcd-events-ready", "resource-manager-ready", "kube-controller-manager-ready", "kube-scheduler-ready", "shoot-core-applied",
	"tunnel", "nodes-updated",
}

// tasksWhenReady delete what is used until a change is rolled out. When that is not waited for, the next operation deletes it.
var tasksWhenReady = []string{"stale-operating-system-configs", "stale-node-local-dns", "cleanup-credentials"}

// hasSkipReadiness is whether the annotation is set. Its value has no meaning.
func hasSkipReadiness(shoot *corev1beta1.Shoot) bool {
	_, ok := shoot.Annotations[constants.ShootSkipReadiness]
	return ok
}

// skipsReadiness is whether the operation does not wait until what it deploys is ready. It waits in spite of the annotation while credentials
// or the encryption change, as data and nodes that do not follow would be lost with the old key or CA, and when the shoot is hibernated: what
// deletes the machines runs until they are gone.
func skipsReadiness(shoot *corev1beta1.Shoot) bool {
	if !hasSkipReadiness(shoot) || shoot.HibernationWanted() || observed.ChangesEncryption(shoot) || rotating(shoot) {
		return false
	}
	var phases []corev1beta1.CredentialsRotationPhase
	rotation := observed.Rotation(shoot)
	if ca := rotation.CertificateAuthorities; ca != nil {
		phases = append(phases, ca.Phase)
	}
	if key := rotation.ServiceAccountKey; key != nil {
		phases = append(phases, key.Phase)
	}
	if key := rotation.ETCDEncryptionKey; key != nil {
		phases = append(phases, key.Phase)
	}
	return !slices.ContainsFunc(phases, func(phase corev1beta1.CredentialsRotationPhase) bool {
		return phase == corev1beta1.RotationPreparing || phase == corev1beta1.RotationPreparingWithoutWorkersRollout || phase == corev1beta1.RotationCompleting
	})
}

// withoutReadiness returns the tasks without those that wait until something is ready, or need that.
func withoutReadiness(tasks []flow.Task) []flow.Task {
	return flow.Without(tasks, slices.Concat(readinessTasks, tasksWhenReady)...)
}

// removeSkipReadiness removes the annotation from a shoot that had it when the operation began: it is for one operation that succeeds.
func (r *reconciler) removeSkipReadiness(ctx context.Context, shoot *corev1beta1.Shoot) error {
	if !hasSkipReadiness(shoot) {
		return nil
	}
	return r.updateAnnotation(ctx, shoot, constants.ShootSkipReadiness, func(string) string { return "" })
}
