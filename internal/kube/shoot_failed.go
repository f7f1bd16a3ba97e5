package kube

import corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"

// ShootFailed reports whether the last operation of a Shoot has failed for its current spec and is not retried any more: only a change of
// the spec or the retry operation starts another one.
func ShootFailed(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateFailed && shoot.Generation == shoot.Status.ObservedGeneration
}
