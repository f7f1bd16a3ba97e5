package care

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// writeStatus writes the conditions and constraints that differ. While a Shoot is being deleted, its components are deleted one by one, so
// that nothing is reported.
func (r *reconciler) writeStatus(ctx context.Context, shoot *corev1beta1.Shoot, o *observed) error {
	if shoot.DeletionTimestamp != nil && operationState(shoot) == corev1beta1.LastOperationStateProcessing {
		return nil
	}
	now, after := r.Clock.Now(), shoot.DeepCopy()
	for _, want := range decide(shoot, o, newThresholds(r.Config), now) {
		want = withThreshold(kube.Condition(shoot.Status.Conditions, want.Type), want, r.threshold(want.Type), now)
		after.Status.Conditions, _ = kube.SetCondition(after.Status.Conditions, duringOperation(shoot, want), now)
	}
	if len(shoot.Spec.Provider.Workers) == 0 { // the shoot may have had workers before
		after.Status.Conditions = slices.DeleteFunc(after.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Type == corev1beta1.ShootEveryNodeReady })
	}
	after.Status.Constraints = mergeConstraints(shoot.Status.Constraints, constraints(shoot, o, now), now)
	if apiequality.Semantic.DeepEqual(shoot.Status, after.Status) {
		return nil
	}
	if err := r.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(shoot)); err != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}

// threshold is the configured threshold of a condition, or zero.
func (r *reconciler) threshold(typ corev1beta1.ConditionType) time.Duration {
	for _, t := range r.Config.ConditionThresholds {
		if t.Type == string(typ) {
			return t.Duration.Duration
		}
	}
	return 0
}
