package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	shootconditions "gardener.cloud/gardener/internal/controllermanager/shoot/conditions" // "conditions" are those of a Shoot
	"gardener.cloud/gardener/internal/kube"
)

const (
	reasonSeedUnknown  = "SeedStatusUnknown"
	messageSeedUnknown = "Gardenlet stopped posting seed status."

	reasonShootUnknown  = "StatusUnknown"
	messageShootUnknown = "Gardenlet stopped sending heartbeats."
)

// markSeed turns GardenletReady of a Seed to Unknown.
func (r *reconciler) markSeed(ctx context.Context, seed *corev1beta1.Seed, now time.Time) error {
	// The gardenlet may have reported it as Unknown itself; then its reason and message say more.
	if ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady); ready != nil && ready.Status == corev1beta1.ConditionUnknown {
		return nil
	}
	before := seed.DeepCopy()
	seed.Status.Conditions, _ = kube.SetCondition(seed.Status.Conditions, corev1beta1.Condition{
		Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionUnknown, Reason: reasonSeedUnknown, Message: messageSeedUnknown,
	}, now)
	logf.FromContext(ctx).Info("Turning GardenletReady to Unknown because the Lease is not renewed")
	if err := r.gardenCache.Status().Patch(ctx, seed, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write condition of Seed %q: %w", seed.Name, err)
	}
	return nil
}

// markShoots turns the conditions and constraints of the Shoots of a Seed to Unknown that its gardenlet writes. A Shoot that is migrated belongs to the old Seed until
// status.seedName changes.
func (r *reconciler) markShoots(ctx context.Context, seed *corev1beta1.Seed, now time.Time) error {
	shoots := &corev1beta1.ShootList{}
	if err := r.gardenCache.List(ctx, shoots, references.To(references.RefOf(references.Seed, seed)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Shoots: %w", err)
	}
	var errs []error
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		if now := shoot.Status.SeedName; now != nil && *now != seed.Name {
			continue
		}
		conditions, changed := unknown(shoot, shoot.Status.Conditions, now)
		constraints, changedToo := unknown(shoot, shoot.Status.Constraints, now)
		if !changed && !changedToo {
			continue
		}
		after := shoot.DeepCopy()
		after.Status.Conditions, after.Status.Constraints = conditions, constraints
		logf.FromContext(ctx).V(1).Info("Turning conditions of shoot to Unknown", "shoot", client.ObjectKeyFromObject(shoot))
		// The gardenlet may have reported the conditions since the Shoot was read.
		patch := client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{})
		if err := r.gardenCache.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("write conditions of Shoot %q: %w", client.ObjectKeyFromObject(shoot), err))
		}
	}
	return errors.Join(errs...)
}

// unknown returns a list of conditions of a Shoot with those Unknown that its gardenlet writes, and whether that is a change. The given list is not
// changed. Other controllers of this process write the rest, and would write it again.
func unknown(shoot *corev1beta1.Shoot, conditions []corev1beta1.Condition, now time.Time) ([]corev1beta1.Condition, bool) {
	changed := false
	for _, condition := range conditions {
		if condition.Status == corev1beta1.ConditionUnknown || condition.Type == corev1beta1.ShootReadyForMigration || shootconditions.FromSeed(shoot, condition.Type) {
			continue
		}
		conditions, _ = kube.SetCondition(conditions, corev1beta1.Condition{
			Type: condition.Type, Status: corev1beta1.ConditionUnknown, Reason: reasonShootUnknown, Message: messageShootUnknown,
		}, now)
		changed = true
	}
	return conditions, changed
}
