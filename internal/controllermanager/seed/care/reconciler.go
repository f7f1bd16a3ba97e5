package care

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
)

// reconciler maintains one condition of Seeds.
type reconciler struct {
	gardenCache client.Client
	clock       clock.PassiveClock
	syncPeriod  time.Duration
	threshold   time.Duration
	check       func(context.Context, client.Client, *corev1beta1.Seed) (corev1beta1.ConditionType, *corev1beta1.Condition, error)
}

// Reconcile checks a Seed and writes its condition if it differs.
func (r *reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	typ, desired, err := r.check(ctx, r.gardenCache, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	again := reconcile.Result{RequeueAfter: r.syncPeriod}
	before := seed.DeepCopy()
	if desired == nil {
		seed.Status.Conditions = slices.DeleteFunc(seed.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Type == typ })
		if len(seed.Status.Conditions) == len(before.Status.Conditions) {
			return again, nil
		}
	} else {
		now := r.clock.Now()
		if left := soften(kube.Condition(seed.Status.Conditions, typ), desired, r.threshold, now); left > 0 {
			again.RequeueAfter = min(again.RequeueAfter, left)
		}
		var changed bool
		if seed.Status.Conditions, changed = kube.SetCondition(seed.Status.Conditions, *desired, now); !changed {
			return again, nil
		}
		logf.FromContext(ctx).Info("Changing condition", "type", typ, "status", desired.Status, "reason", desired.Reason)
	}
	// Other controllers write conditions of Seeds too, the gardenlet with every heartbeat. A strategic merge patch does not change these.
	if err := r.gardenCache.Status().Patch(ctx, seed, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write condition %s of Seed %q: %w", typ, seed.Name, err)
	}
	return again, nil
}

func checkBackupBuckets(ctx context.Context, c client.Client, seed *corev1beta1.Seed) (corev1beta1.ConditionType, *corev1beta1.Condition, error) {
	buckets := &corev1beta1.BackupBucketList{}
	if err := c.List(ctx, buckets, references.To(references.RefOf(references.Seed, seed)), client.UnsafeDisableDeepCopy); err != nil {
		return "", nil, fmt.Errorf("list BackupBuckets: %w", err)
	}
	return corev1beta1.SeedBackupBucketsReady, backupBucketsReady(seed.Spec.Backup != nil, buckets.Items), nil
}

func checkExtensions(ctx context.Context, c client.Client, seed *corev1beta1.Seed) (corev1beta1.ConditionType, *corev1beta1.Condition, error) {
	installations := &corev1beta1.ControllerInstallationList{}
	if err := c.List(ctx, installations, references.To(references.RefOf(references.Seed, seed)), client.UnsafeDisableDeepCopy); err != nil {
		return "", nil, fmt.Errorf("list ControllerInstallations: %w", err)
	}
	return corev1beta1.SeedExtensionsReady, extensionsReady(installations.Items), nil
}
