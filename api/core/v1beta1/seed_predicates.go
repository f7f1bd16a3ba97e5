package v1beta1

import (
	"strconv"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// ShootReconciliationsStopped reports whether an operator has stopped the reconciliation of the shoots of a seed, with an annotation. An
// invalid value of the annotation counts as false.
func (s *Seed) ShootReconciliationsStopped() bool {
	stopped, _ := strconv.ParseBool(s.Annotations[constants.EmergencyStopShootReconciliations])
	return stopped
}
