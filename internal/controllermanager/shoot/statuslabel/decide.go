package statuslabel

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Values of the label.
const (
	healthy     = "healthy"
	progressing = "progressing"
	unknown     = "unknown"
	unhealthy   = "unhealthy"
)

// severity orders the values.
var severity = map[string]int{healthy: 0, progressing: 1, unknown: 2, unhealthy: 3}

// valueFor is the value of the label for the status of a condition.
var valueFor = map[corev1beta1.ConditionStatus]string{
	corev1beta1.ConditionTrue:        healthy,
	corev1beta1.ConditionProgressing: progressing,
	corev1beta1.ConditionUnknown:     unknown,
	corev1beta1.ConditionFalse:       unhealthy,
}

// health returns the worst of the errors and conditions of a Shoot. While it is created or deleted, conditions cannot be True yet or any
// more, so that only errors count.
func health(status *corev1beta1.ShootStatus) string {
	worst := healthy
	if len(status.LastErrors) > 0 {
		worst = unhealthy
	}
	last := status.LastOperation
	if last == nil ||
		last.Type == corev1beta1.LastOperationTypeCreate && last.State != corev1beta1.LastOperationStateSucceeded ||
		last.Type == corev1beta1.LastOperationTypeDelete {
		return worst
	}
	for _, condition := range status.Conditions {
		value, ok := valueFor[condition.Status]
		if !ok {
			value = unknown
		}
		if severity[value] > severity[worst] {
			worst = value
		}
	}
	return worst
}
