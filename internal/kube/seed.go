package kube

import (
	"strconv"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// SeedStopped reports whether an operator has stopped the reconciliation of the shoots of a Seed. An invalid value of the annotation counts as
// false.
func SeedStopped(seed *corev1beta1.Seed) bool {
	stopped, _ := strconv.ParseBool(seed.Annotations[constants.EmergencyStopShootReconciliations])
	return stopped
}
