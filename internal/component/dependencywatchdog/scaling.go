package dependencywatchdog

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Probed reports whether a shoot is probed: it has nodes, and is neither being created, deleted, moved nor hibernated.
func Probed(shoot *corev1beta1.Shoot) bool {
	if shoot == nil || shoot.DeletionTimestamp != nil || shoot.Workerless() || shoot.HibernationWanted() || shoot.Status.Hibernated {
		return false
	}
	last := shoot.Status.LastOperation
	switch {
	case last == nil:
		return false
	case last.Type == corev1beta1.LastOperationTypeCreate || last.Type == corev1beta1.LastOperationTypeRestore:
		return last.State == corev1beta1.LastOperationStateSucceeded
	}
	return last.Type == corev1beta1.LastOperationTypeReconcile
}

// ScaleUp changes a Deployment that the prober has scaled down: it gets as many pods as it had.
func ScaleUp(deployment *appsv1.Deployment) {
	replicas, err := strconv.ParseInt(deployment.Annotations[AnnotationReplicas], 10, 32)
	if err != nil || replicas < 1 {
		replicas = 1
	}
	deployment.Spec.Replicas = new(int32(replicas))
	Release(deployment)
}

// Release removes the annotations of the prober from a Deployment.
func Release(deployment *appsv1.Deployment) {
	delete(deployment.Annotations, AnnotationReplicas)
	delete(deployment.Annotations, constants.DependencyWatchdogMeltdownProtectionActive)
}
