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
	"gardener.cloud/gardener/internal/controllermanager/index"
	"gardener.cloud/gardener/internal/kube"
)

// reconciler maintains one condition of Seeds.
type reconciler struct {
	gardenClient client.Client
	clock        clock.Clock
	syncPeriod   time.Duration
	threshold    time.Duration
	check        func(context.Context, client.Client, *corev1beta1.Seed) (corev1beta1.ConditionType, *corev1beta1.Condition, error)
}

// Reconcile looks at what a Seed has and writes its condition if it differs.
func (r *reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	typ, want, err := r.check(ctx, r.gardenClient, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	again := reconcile.Result{RequeueAfter: r.syncPeriod}
	before := seed.DeepCopy()
	if want == nil {
		seed.Status.Conditions = slices.DeleteFunc(seed.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Type == typ })
		if len(seed.Status.Conditions) == len(before.Status.Conditions) {
			return again, nil
		}
	} else {
		now := r.clock.Now()
		if left := soften(kube.Condition(seed.Status.Conditions, typ), want, r.threshold, now); left > 0 {
			again.RequeueAfter = min(again.RequeueAfter, left)
		}
		var changed bool
		if seed.Status.Conditions, changed = kube.SetCondition(seed.Status.Conditions, *want, now); !changed {
			return again, nil
		}
		logf.FromContext(ctx).Info("Changing condition", "type", typ, "status", want.Status, "reason", want.Reason)
	}
	// Others write conditions of Seeds too, the gardenlet with every heartbeat. Such a patch leaves theirs alone.
	if err := r.gardenClient.Status().Patch(ctx, seed, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write condition %s of Seed %q: %w", typ, seed.Name, err)
	}
	return again, nil
}

func checkBackupBuckets(ctx context.Context, c client.Client, seed *corev1beta1.Seed) (corev1beta1.ConditionType, *corev1beta1.Condition, error) {
	buckets := &corev1beta1.BackupBucketList{}
	if err := c.List(ctx, buckets, client.MatchingFields{index.SeedName: seed.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return "", nil, fmt.Errorf("list BackupBuckets: %w", err)
	}
	return corev1beta1.SeedBackupBucketsReady, backupBucketsReady(seed.Spec.Backup != nil, buckets.Items), nil
}

func checkExtensions(ctx context.Context, c client.Client, seed *corev1beta1.Seed) (corev1beta1.ConditionType, *corev1beta1.Condition, error) {
	installations := &corev1beta1.ControllerInstallationList{}
	if err := c.List(ctx, installations, client.MatchingFields{index.SeedRef: seed.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return "", nil, fmt.Errorf("list ControllerInstallations: %w", err)
	}
	return corev1beta1.SeedExtensionsReady, extensionsReady(installations.Items), nil
}
