package migration

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// report writes the constraint of a Shoot, or removes it if it is nil. The gardenlet writes the other constraints.
func (r *reconciler) report(ctx context.Context, shoot *corev1beta1.Shoot, constraint *corev1beta1.Condition) error {
	after := shoot.DeepCopy()
	if constraint != nil {
		after.Status.Constraints, _ = kube.SetCondition(after.Status.Constraints, *constraint, r.Clock.Now())
	} else {
		after.Status.Constraints = slices.DeleteFunc(after.Status.Constraints, func(c corev1beta1.Condition) bool {
			return c.Type == corev1beta1.ShootReadyForMigration
		})
	}
	if apiequality.Semantic.DeepEqual(shoot.Status.Constraints, after.Status.Constraints) {
		return nil
	}
	if err := r.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(shoot)); err != nil {
		return fmt.Errorf("write constraint: %w", err)
	}
	return nil
}
