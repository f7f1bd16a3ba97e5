package lifecycle

import (
	"strconv"
	"time"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/gardenlet/seed/care"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/shard"
	"gardener.cloud/gardener/pkg/maintenance"
)

// action is what one pass does.
type action string

const (
	// idle does nothing until the time has come, or something changes.
	idle action = "idle"
	// tell only writes the Cluster resource, so that extensions hear that the shoot is left alone.
	tell action = "tell"
	// reconcile runs the flow that makes the control plane be as it is wanted.
	reconcileShoot action = "reconcile"
	// remove runs the flow that takes it away.
	remove action = "remove"
	// postpone only says in the status that there is something to do, and what it waits for.
	postpone action = "postpone"
	// release takes off the finalizer: nothing was ever made for the shoot.
	release action = "release"
)

// seedPatience is when to look again at a shoot whose seed is not ready. A change of the Seed is heard of at once.
const seedPatience = time.Minute

// facts are what a decision is made from.
type facts struct {
	shoot    *corev1beta1.Shoot
	seed     *corev1beta1.Seed
	seedName string
	// version is that of the running gardenlet.
	version string
	config  gardenletconfigv1alpha1.ShootControllerConfiguration
	now     time.Time
}

// verdict is what is to be done.
type verdict struct {
	action    action
	operation corev1beta1.LastOperationType
	// after is when to look again if nothing happens. Zero means never.
	after time.Duration
	// reason says why, for the log.
	reason string
}

// decide applies the rules of when a shoot is reconciled. Source: concepts.txt, gardenlet, Shoot Controller, "Main" Reconciler.
func decide(f facts) verdict {
	shoot := f.shoot
	if name := shoot.Spec.SeedName; name == nil || *name != f.seedName {
		return verdict{action: idle, reason: "it is for another seed"}
	}
	if status := shoot.Status.SeedName; status != nil && *status != f.seedName {
		return verdict{action: idle, reason: "its control plane is on another seed"}
	}
	deleting := shoot.DeletionTimestamp != nil
	if deleting && !hasFinalizer(shoot) {
		return verdict{action: idle, reason: "nothing is left to delete"}
	}
	if deleting && shoot.Status.UID == "" {
		return verdict{action: release, operation: corev1beta1.LastOperationTypeDelete, reason: "nothing was made for it"}
	}
	if ignored(f) {
		return verdict{action: tell, reason: "it is to be ignored"}
	}
	last, current := shoot.Status.LastOperation, shoot.Generation == shoot.Status.ObservedGeneration
	if last != nil && last.State == corev1beta1.LastOperationStateFailed && current && shoot.Status.Gardener.Version == f.version && !forced(shoot) {
		return verdict{action: tell, reason: "its last operation failed for good"}
	}
	todo, why := work(f), seedUnready(f.seed, f.version)
	switch {
	case why != "" && todo.action == idle:
		return verdict{action: idle, after: seedPatience, reason: why}
	case why != "":
		return verdict{action: postpone, operation: todo.operation, after: seedPatience, reason: why}
	case todo.action != idle:
		return todo
	}
	if wait := nextRegular(f).Sub(f.now); wait > 0 {
		return verdict{action: idle, after: wait, reason: "nothing has changed"}
	}
	return verdict{action: reconcileShoot, operation: nextOperation(last), reason: "it is time to look at it"}
}

// work is what there is to do for a shoot, whatever time it is.
func work(f facts) verdict {
	last := f.shoot.Status.LastOperation
	if f.shoot.DeletionTimestamp != nil {
		return verdict{action: remove, operation: corev1beta1.LastOperationTypeDelete, reason: "it is deleted"}
	}
	operation := nextOperation(last)
	switch {
	case last == nil:
		return verdict{action: reconcileShoot, operation: operation, reason: "it is new"}
	case last.State != corev1beta1.LastOperationStateSucceeded:
		return verdict{action: reconcileShoot, operation: operation, reason: "its last operation is not done"}
	case f.shoot.Generation != f.shoot.Status.ObservedGeneration:
		return verdict{action: reconcileShoot, operation: operation, reason: "it has changed"}
	case rotating(f.shoot):
		return verdict{action: reconcileShoot, operation: operation, reason: "its rotation goes on"}
	}
	return verdict{action: idle}
}

func hasFinalizer(shoot *corev1beta1.Shoot) bool {
	for _, finalizer := range shoot.Finalizers {
		if finalizer == constants.FinalizerGardenerName {
			return true
		}
	}
	return false
}

// nextOperation says what the next operation is: that which is not done, or else a look at what is there.
func nextOperation(last *corev1beta1.LastOperation) corev1beta1.LastOperationType {
	switch {
	case last == nil:
		return corev1beta1.LastOperationTypeCreate
	case last.State != corev1beta1.LastOperationStateSucceeded &&
		(last.Type == corev1beta1.LastOperationTypeCreate || last.Type == corev1beta1.LastOperationTypeRestore):
		return last.Type
	}
	return corev1beta1.LastOperationTypeReconcile
}

// mayOverwrite is whether the owner of a shoot has a say in how often it is looked at.
func mayOverwrite(f facts) bool {
	return f.shoot.Namespace == constants.GardenNamespace || f.config.RespectSyncPeriodOverwrite != nil && *f.config.RespectSyncPeriodOverwrite
}

func ignored(f facts) bool {
	value, _ := strconv.ParseBool(f.shoot.Annotations[constants.ShootIgnore]) // what is no answer is a no
	return value && mayOverwrite(f)
}

// seedUnready says why a seed cannot take changes now, or nothing. Its components have to be those of this gardenlet.
func seedUnready(seed *corev1beta1.Seed, version string) string {
	switch {
	case seed == nil:
		return "its seed is not there"
	case care.Stopped(seed):
		return "an operator has stopped all work on shoots of its seed"
	case seed.Status.Gardener == nil || seed.Status.Gardener.Version != version:
		return "its seed was not reconciled by this version of the gardenlet yet"
	case seed.Status.ObservedGeneration < seed.Generation:
		return "its seed has changed and was not reconciled yet"
	}
	ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	switch {
	case ready == nil:
		return "its seed is not known to be ready"
	case ready.Status != corev1beta1.ConditionTrue:
		return "its seed is not ready: " + ready.Message
	}
	return ""
}

// nextRegular is when a shoot that is as it is wanted is looked at again.
func nextRegular(f facts) time.Time {
	last := f.shoot.Status.LastOperation.LastUpdateTime.Time
	if confined(f) {
		return inWindow(f.shoot, last, f.now)
	}
	period := f.config.SyncPeriod.Duration
	if mayOverwrite(f) {
		if own, err := time.ParseDuration(f.shoot.Annotations[constants.ShootSyncPeriod]); err == nil {
			period = max(period, own)
		}
	}
	// Up to a tenth later, so that shoots that were made together drift apart.
	return last.Add(period + shard.Delay(f.shoot.UID, last, period/10))
}

// confined is whether a shoot is looked at in its maintenance time window only.
func confined(f facts) bool {
	if f.config.ReconcileInMaintenanceOnly != nil && *f.config.ReconcileInMaintenanceOnly {
		return true
	}
	m := f.shoot.Spec.Maintenance
	return m != nil && m.ConfineSpecUpdateRollout != nil && *m.ConfineSpecUpdateRollout
}

// inWindow is the next time in the maintenance time window of a shoot, at a place of its own. A shoot is looked at once per window.
func inWindow(shoot *corev1beta1.Shoot, last, now time.Time) time.Time {
	begin, length, ok := window(shoot, now)
	if !ok {
		return last.Add(24 * time.Hour)
	}
	if !last.Before(begin) { // done in this one, or after it
		begin = begin.Add(24 * time.Hour)
	}
	at := begin.Add(shard.Delay(shoot.UID, begin, length*9/10))
	if end := begin.Add(length); at.Before(now) && !now.Before(end) {
		at = at.Add(24 * time.Hour)
	}
	return at
}

// window is the maintenance time window that lasts, or the last one that began.
func window(shoot *corev1beta1.Shoot, now time.Time) (begin time.Time, length time.Duration, ok bool) {
	if shoot.Spec.Maintenance == nil || shoot.Spec.Maintenance.TimeWindow == nil {
		return begin, 0, false
	}
	begin, end, err := maintenance.Latest(*shoot.Spec.Maintenance.TimeWindow, now)
	return begin, end.Sub(begin), err == nil && end.After(begin)
}
