package conditions

import (
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// seedTypes are the types of conditions that come from Seeds. They are no types of conditions of Shoots that are hosted by a seed.
var seedTypes = []corev1beta1.ConditionType{
	corev1beta1.SeedGardenletReady, corev1beta1.SeedBackupBucketsReady, corev1beta1.SeedExtensionsReady,
	corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedEmergencyStopShootReconciliations,
}

// merge returns the conditions of a Shoot with those of its Seed, if it has one, and without those that a Seed had once.
func merge(conditions []corev1beta1.Condition, seed *corev1beta1.Seed) []corev1beta1.Condition {
	var ofSeed []corev1beta1.Condition
	if seed != nil {
		ofSeed = seed.Status.Conditions
	}
	in := func(list []corev1beta1.Condition, typ corev1beta1.ConditionType) int {
		return slices.IndexFunc(list, func(c corev1beta1.Condition) bool { return c.Type == typ })
	}
	var merged []corev1beta1.Condition
	for _, condition := range conditions {
		if i := in(ofSeed, condition.Type); i >= 0 {
			merged = append(merged, ofSeed[i])
		} else if !slices.Contains(seedTypes, condition.Type) {
			merged = append(merged, condition)
		}
	}
	for _, condition := range ofSeed {
		if in(merged, condition.Type) < 0 {
			merged = append(merged, condition)
		}
	}
	return merged
}
