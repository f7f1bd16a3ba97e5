package conditions

import (
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// seedTypes are the types of conditions that are copied from Seeds. Other Shoots have conditions of these types only if they are
// self-hosted.
var seedTypes = []corev1beta1.ConditionType{
	corev1beta1.SeedGardenletReady, corev1beta1.SeedBackupBucketsReady, corev1beta1.SeedExtensionsReady,
	corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedEmergencyStopShootReconciliations,
}

// FromSeed reports whether a condition of a Shoot is a copy of that of the Seed that runs in it.
func FromSeed(shoot *corev1beta1.Shoot, typ corev1beta1.ConditionType) bool {
	return !shoot.SelfHosted() && slices.Contains(seedTypes, typ)
}

// merge returns the conditions of a Shoot with those of the Seed that runs in it, which may be nil, and without those that were copied before
// and do not exist any more.
func merge(conditions []corev1beta1.Condition, seed *corev1beta1.Seed) []corev1beta1.Condition {
	var seedConditions []corev1beta1.Condition
	if seed != nil {
		seedConditions = seed.Status.Conditions
	}
	var merged []corev1beta1.Condition
	for _, condition := range conditions {
		if copied := kube.Condition(seedConditions, condition.Type); copied != nil {
			merged = append(merged, *copied)
		} else if !slices.Contains(seedTypes, condition.Type) {
			merged = append(merged, condition)
		}
	}
	for _, condition := range seedConditions {
		if kube.Condition(merged, condition.Type) == nil {
			merged = append(merged, condition)
		}
	}
	return merged
}
