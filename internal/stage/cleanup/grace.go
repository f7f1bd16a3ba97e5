package cleanup

import (
	"context"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// The documented periods after which finalizers are removed.
const webhooksPeriod, extendedAPIsPeriod, resourcesPeriod, snapshotsPeriod = 5 * time.Minute, time.Hour, 5 * time.Minute, time.Hour

// Periods are for how long objects may keep their finalizers. They begin with the deletion of an object. Zero means forever.
type Periods struct {
	// Webhooks is for webhooks and admission policies, ExtendedAPIs for APIServices and CustomResourceDefinitions, Snapshots for snapshots of
	// volumes and their contents.
	Webhooks, ExtendedAPIs, Snapshots time.Duration
	// Resources is for workloads, Ingresses, Services and PersistentVolumeClaims.
	Resources time.Duration
	// Volumes is for PersistentVolumes. The documents have no period for them, and one without its object costs money without being seen:
	// it is zero unless the shoot owner has set the period of Resources.
	Volumes time.Duration
}

// PeriodsOf returns the documented periods, and those that the shoot owner has set instead.
func PeriodsOf(shoot *corev1beta1.Shoot) Periods {
	set := func(annotation string, otherwise time.Duration) time.Duration {
		seconds, err := strconv.ParseUint(shoot.Annotations[annotation], 10, 31)
		if err != nil {
			return otherwise
		}
		return max(time.Second, time.Duration(seconds)*time.Second) //nolint:gosec // 31 bits
	}
	return Periods{
		Webhooks:     set(constants.ShootCleanupWebhooksFinalizeGracePeriodSeconds, webhooksPeriod),
		ExtendedAPIs: set(constants.ShootCleanupExtendedAPIsFinalizeGracePeriodSeconds, extendedAPIsPeriod),
		Resources:    set(constants.ShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds, resourcesPeriod),
		Snapshots:    set(constants.ShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds, snapshotsPeriod),
		Volumes:      set(constants.ShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds, 0),
	}
}

// OnlyInfrastructure reports whether the shoot owner has limited the cleanup to what costs money. An invalid value counts as false.
func OnlyInfrastructure(shoot *corev1beta1.Shoot) bool {
	skip, _ := strconv.ParseBool(shoot.Annotations[constants.ShootSkipCleanup])
	return skip
}

// await waits until the objects are gone, and removes the finalizers of those whose period is over.
func (k kind) await(ctx context.Context, shootClient client.WithWatch, clock clock.PassiveClock) error {
	object, err := k.newObject(shootClient.Scheme())
	if err != nil {
		return err
	}
	for {
		next, err := k.finalize(ctx, shootClient, clock.Now())
		if err != nil {
			return err
		}
		until, cancel := ctx, func() {}
		if k.period > 0 {
			until, cancel = context.WithTimeout(ctx, next)
		}
		err = kube.AwaitKind(until, shootClient, object, k.newList(), k.gone, nil)
		over := until.Err() != nil && ctx.Err() == nil
		cancel()
		if !over || err == nil {
			return err
		}
	}
}

// finalize removes the finalizers of objects whose period is over, and returns for how long that of the next one lasts.
func (k kind) finalize(ctx context.Context, shootClient client.Client, now time.Time) (time.Duration, error) {
	next := k.period
	if next == 0 {
		return 0, nil
	}
	_, err := k.each(ctx, shootClient, func(object client.Object) error {
		if object.GetDeletionTimestamp() == nil {
			return nil
		}
		if left := object.GetDeletionTimestamp().Add(k.period).Sub(now); left > 0 {
			next = min(next, left)
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		err := kube.PatchMetadata(ctx, shootClient, object, func(o *metav1.PartialObjectMetadata) { o.Finalizers = nil })
		if apierrors.IsConflict(err) { // its controller has just changed it
			next = min(next, time.Second)
			return nil
		}
		return client.IgnoreNotFound(err)
	})
	return next, err
}
