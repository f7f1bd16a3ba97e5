package maintenance

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// report records the last maintenance in the status.
func (r *reconciler) report(ctx context.Context, shoot *corev1beta1.Shoot, last *corev1beta1.LastMaintenance) error {
	before := shoot.DeepCopy()
	shoot.Status.LastMaintenance = last
	if err := r.gardenCache.Status().Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("record maintenance: %w", err)
	}
	return nil
}
