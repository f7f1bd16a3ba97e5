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

// badness orders the values.
var badness = map[string]int{healthy: 0, progressing: 1, unknown: 2, unhealthy: 3}

// of is what a condition means for the whole.
var of = map[corev1beta1.ConditionStatus]string{
	corev1beta1.ConditionTrue:        healthy,
	corev1beta1.ConditionProgressing: progressing,
	corev1beta1.ConditionUnknown:     unknown,
	corev1beta1.ConditionFalse:       unhealthy,
}

// health is the worst that errors and conditions of a Shoot say. While it comes up or goes away, conditions are bad of necessity, so
// that only errors count.
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
		value, ok := of[condition.Status]
		if !ok {
			value = unknown
		}
		if badness[value] > badness[worst] {
			worst = value
		}
	}
	return worst
}
