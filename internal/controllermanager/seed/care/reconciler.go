package care

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/references"
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
	return r.report(ctx, seed, typ, desired)
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
