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

// rollShoots requests that the gardenlets reconcile every shoot if their image is a new one, and does not wait for it. They would do so by
// themselves within the hour, but would not retry shoots that Failed.
func (u *upRun) rollShoots(ctx context.Context) error {
	if u.release() == u.state.Image {
		return nil
	}
	ctx, cancel := u.limit(ctx, gardenTimeout)
	defer cancel()
	c, err := u.Client(VirtualGarden)
	if err != nil {
		return err
	}
	shoots := &corev1beta1.ShootList{}
	if err := retryReplaced(func() error { return c.List(ctx, shoots) }); err != nil {
		return fmt.Errorf("list the shoots to roll to the new image: %w", err)
	}
	for _, shoot := range shoots.Items {
		operation := rollOperation(&shoot)
		if operation == "" {
			continue
		}
		title := fmt.Sprintf("Requesting %[2]s of shoot %[1]s with the new image", client.ObjectKeyFromObject(&shoot), operation)
		if err := u.step(ctx, title, "", func(ctx context.Context, _ func(string)) error {
			return client.IgnoreNotFound(kube.PatchMetadata(ctx, c, &shoot, func(o *metav1.PartialObjectMetadata) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, operation)
			}))
		}); err != nil {
			return err
		}
	}
	// Only now, so that the next run repeats what an interrupted one has not done.
	u.state.Image = u.release()
	return u.save()
}

// rollOperation is the operation that rolls a shoot to a new image; empty if it gets the image anyway, or has another operation pending.
func rollOperation(shoot *corev1beta1.Shoot) string {
	switch {
	case shoot.DeletionTimestamp != nil, pendingOperation(shoot) != "":
		return ""
	case shoot.Status.LastOperation == nil:
		return "" // Its creation uses the new image.
	case hasFailed(shoot):
		return constants.ShootOperationRetry
	}
	return constants.GardenerOperationReconcile
}
