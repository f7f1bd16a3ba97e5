package landscape

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// rollShoots asks for every shoot to be reconciled by a gardenlet that has a new image, and does not wait for it. The gardenlet would do
// it by itself within the hour, and would leave alone what has failed for good.
func (u *upRun) rollShoots(ctx context.Context, cluster Cluster) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gardenTimeout, fmt.Errorf("not done after %s", gardenTimeout))
	defer cancel()
	c, err := u.Client(cluster.Name)
	if err != nil {
		return err
	}
	shoots := &corev1beta1.ShootList{}
	if err := retryReplaced(func() error { return c.List(ctx, shoots) }); err != nil {
		return fmt.Errorf("list the shoots that are to follow the new image: %w", err)
	}
	for _, shoot := range shoots.Items {
		operation := rollOperation(&shoot)
		if operation == "" {
			continue
		}
		title := fmt.Sprintf("Ask shoot %s to follow the new image (%s)", client.ObjectKeyFromObject(&shoot), operation)
		if err := u.step(ctx, title, "", func(ctx context.Context, _ func(string)) error {
			return client.IgnoreNotFound(kube.PatchMetadata(ctx, c, &shoot, func(o *metav1.PartialObjectMetadata) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, operation)
			}))
		}); err != nil {
			return err
		}
	}
	return nil
}

// rollOperation is what has to be asked of a shoot so that it follows a new image; empty if it does so anyway, or must be left alone.
func rollOperation(shoot *corev1beta1.Shoot) string {
	switch {
	case shoot.DeletionTimestamp != nil, pendingOperation(shoot) != "":
		return ""
	case shoot.Status.LastOperation == nil:
		return "" // It is yet to be made.
	case hasFailed(shoot):
		return constants.ShootOperationRetry
	}
	return constants.GardenerOperationReconcile
}
