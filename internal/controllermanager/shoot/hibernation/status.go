package hibernation

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// report records in the status when a trigger was executed.
func (r *reconciler) report(ctx context.Context, shoot *corev1beta1.Shoot, now time.Time) error {
	before := shoot.DeepCopy()
	shoot.Status.LastHibernationTriggerTime = &metav1.Time{Time: now}
	if err := r.gardenCache.Status().Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("record hibernation: %w", err)
	}
	return nil
}
