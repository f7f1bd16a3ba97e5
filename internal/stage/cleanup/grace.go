package cleanup

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// grace is for how long objects may keep their finalizers.
type grace struct {
	// period is that of Inputs.
	period time.Duration
	clock  clock.PassiveClock
}

// GracePeriod returns the period that the owner of a shoot has set. Zero means none: finalizers are kept forever.
func GracePeriod(shoot *corev1beta1.Shoot) time.Duration {
	seconds, err := strconv.ParseUint(shoot.Annotations[constants.ShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds], 10, 31)
	if err != nil {
		return 0
	}
	return max(time.Second, time.Duration(seconds)*time.Second) //nolint:gosec // 31 bits
}

// Skipped reports whether the owner of a shoot has turned off the cleanup. An invalid value counts as false.
func Skipped(shoot *corev1beta1.Shoot) bool {
	skip, _ := strconv.ParseBool(shoot.Annotations[constants.ShootSkipCleanup])
	return skip
}

// await waits until objects are gone, and removes the finalizers of those whose period is over.
func (g grace) await(ctx context.Context, shootClient client.Client, list client.ObjectList, counts func(client.Object) bool, gone func(context.Context) error) error {
	if g.period == 0 {
		return gone(ctx)
	}
	for {
		next, err := g.finalize(ctx, shootClient, list, counts)
		if err != nil {
			return err
		}
		until, cancel := context.WithTimeout(ctx, next)
		err = gone(until)
		over := until.Err() != nil && ctx.Err() == nil
		cancel()
		if !over || err == nil {
			return err
		}
	}
}

// finalize removes the finalizers of objects whose period is over, and returns for how long that of the next one lasts.
func (g grace) finalize(ctx context.Context, shootClient client.Client, list client.ObjectList, counts func(client.Object) bool) (time.Duration, error) {
	next := g.period
	err := eachObject(ctx, shootClient, list, func(object client.Object) error {
		if object.GetDeletionTimestamp() == nil || !usersOwn(object) || !counts(object) {
			return nil
		}
		if left := object.GetDeletionTimestamp().Add(g.period).Sub(g.clock.Now()); left > 0 {
			next = min(next, left)
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return client.IgnoreNotFound(kube.PatchMetadata(ctx, shootClient, object, func(o *metav1.PartialObjectMetadata) { o.Finalizers = nil }))
	})
	if err != nil {
		return 0, fmt.Errorf("remove finalizers in the shoot: %w", err)
	}
	return next, nil
}
