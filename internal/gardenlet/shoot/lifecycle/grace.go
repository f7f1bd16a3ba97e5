package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// grace says for how long objects of a shoot that is deleted may keep their finalizers.
type grace struct {
	// period begins with the deletion of an object. Zero means for ever, as whoever has put the finalizer there may have something to do.
	period time.Duration
	clock  clock.PassiveClock
}

// graceOf reads the period that the owner of a shoot has set.
func graceOf(shoot *corev1beta1.Shoot, c clock.PassiveClock) grace {
	seconds, err := strconv.ParseUint(shoot.Annotations[constants.ShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds], 10, 31)
	if err != nil {
		return grace{clock: c}
	}
	return grace{period: max(time.Second, time.Duration(seconds)*time.Second), clock: c} //nolint:gosec // 31 bits
}

// skipsCleanup is whether the owner of a shoot has taken care of what it has made elsewhere.
func skipsCleanup(shoot *corev1beta1.Shoot) bool {
	skip, _ := strconv.ParseBool(shoot.Annotations[constants.ShootSkipCleanup]) //nolint:errcheck // what is no answer is a no
	return skip
}

// await waits for the end of objects, and takes the finalizers off those whose time is over.
func (g grace) await(ctx context.Context, shoot client.Client, list client.ObjectList, counts func(client.Object) bool, gone func(context.Context) error) error {
	if g.period == 0 {
		return gone(ctx)
	}
	for {
		next, err := g.finalize(ctx, shoot, list, counts)
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

// finalize takes the finalizers off objects whose time is over, and returns when that of the next one is.
func (g grace) finalize(ctx context.Context, shoot client.Client, list client.ObjectList, counts func(client.Object) bool) (time.Duration, error) {
	if err := shoot.List(ctx, list); err != nil {
		return 0, fmt.Errorf("list what is left in the shoot: %w", err)
	}
	next := g.period
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object) //nolint:forcetypeassert // lists have nothing else
		if object.GetDeletionTimestamp() == nil || !usersOwn(object) || !counts(object) {
			return nil
		}
		if left := object.GetDeletionTimestamp().Add(g.period).Sub(g.clock.Now()); left > 0 {
			next = min(next, left)
			return nil
		}
		return client.IgnoreNotFound(kube.PatchMetadata(ctx, shoot, object, func(o *metav1.PartialObjectMetadata) { o.Finalizers = nil }))
	})
	if err != nil {
		return 0, fmt.Errorf("take off finalizers in the shoot: %w", err)
	}
	return next, nil
}
