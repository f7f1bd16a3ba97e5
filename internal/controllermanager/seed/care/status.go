package care

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// report writes a condition of a Seed if it differs, or removes it if the desired one is nil. It returns when to check the Seed again.
func (r *reconciler) report(
	ctx context.Context, seed *corev1beta1.Seed, typ corev1beta1.ConditionType, desired *corev1beta1.Condition,
) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: r.syncPeriod}
	before := seed.DeepCopy()
	if desired == nil {
		seed.Status.Conditions = slices.DeleteFunc(seed.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Type == typ })
		if len(seed.Status.Conditions) == len(before.Status.Conditions) {
			return again, nil
		}
	} else {
		now := r.clock.Now()
		if left := kube.Soften(kube.Condition(seed.Status.Conditions, typ), desired, r.threshold, now); left > 0 {
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
