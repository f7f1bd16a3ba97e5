package lifecycle

import (
	"cmp"
	"strconv"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/shard"
	"gardener.cloud/gardener/internal/shoot/observed"
)

// action is what one pass does.
type action string

const (
	// idle does nothing until it is time for the next reconciliation, or something changes.
	idle action = "idle"
	// writeCluster only writes the Cluster resource, from which extensions know that the shoot is ignored.
	writeCluster action = "write Cluster"
	// reconcileShoot runs the flow that creates or changes the control plane.
	reconcileShoot action = "reconcile"
	// deleteShoot runs the flow that deletes it.
	deleteShoot action = "delete"
	// migrateShoot runs the flow that releases the control plane, as it moves to another seed.
	migrateShoot action = "migrate"
	// postpone only reports in the status that there is something to do, and what it waits for.
	postpone action = "postpone"
	// removeFinalizer removes the finalizer: nothing was ever created for the shoot.
	removeFinalizer action = "remove finalizer"
)

// seedRetryPeriod is when a shoot is checked again whose seed is not ready. Changes of the Seed are watched.
const seedRetryPeriod = time.Minute

// facts are what a decision depends on.
type facts struct {
	shoot    *corev1beta1.Shoot
	seed     *corev1beta1.Seed
	seedName string
	// version is that of the running gardenlet.
	version string
	config  gardenletconfigv1alpha1.ShootControllerConfiguration
	now     time.Time
	// started is when the gardenlet began to reconcile shoots.
	started time.Time
}

// verdict is what to do.
type verdict struct {
	action    action
	operation corev1beta1.LastOperationType
	// after is when to check again if nothing changes. Zero means never.
	after time.Duration
	// reason says why, for the log.
	reason string
}

// decide returns what to do for a shoot. Source: concepts.txt, gardenlet, Shoot Controller, "Main" Reconciler.
func decide(f facts) verdict {
	shoot := f.shoot
	if responsible(shoot) != f.seedName {
		return verdict{action: idle, reason: "another seed is responsible"}
	}
	deleting := shoot.DeletionTimestamp != nil
	if deleting && !controllerutil.ContainsFinalizer(shoot, constants.FinalizerGardenerName) {
		return verdict{action: idle, reason: "nothing is left to delete"}
	}
	if deleting && shoot.Status.UID == "" {
		return verdict{action: removeFinalizer, operation: corev1beta1.LastOperationTypeDelete, reason: "nothing was created for it"}
	}
	if ignored(f) {
		return verdict{action: writeCluster, reason: "it is to be ignored"}
	}
	last, current := shoot.Status.LastOperation, shoot.Generation == shoot.Status.ObservedGeneration
	if last != nil && last.State == corev1beta1.LastOperationStateFailed && current && shoot.Status.Gardener.Version == f.version && !forced(shoot) {
		return verdict{action: writeCluster, reason: "its last operation has failed"}
	}
	todo, why := work(f), seedUnready(f.seed, f.version)
	switch {
	case why != "" && todo.action == idle:
		return verdict{action: idle, after: seedRetryPeriod, reason: why}
	case why != "":
		return verdict{action: postpone, operation: todo.operation, after: seedRetryPeriod, reason: why}
	case todo.action != idle:
		return todo
	}
	if wait := nextRegular(f).Sub(f.now); wait > 0 {
		return verdict{action: idle, after: wait, reason: "nothing has changed"}
	}
	return verdict{action: reconcileShoot, operation: nextOperation(last), reason: "it is time for the regular reconciliation"}
}

// work returns what there is to do for a shoot at any time.
func work(f facts) verdict {
	last := f.shoot.Status.LastOperation
	if f.shoot.DeletionTimestamp != nil {
		return verdict{action: deleteShoot, operation: corev1beta1.LastOperationTypeDelete, reason: "it is deleted"}
	}
	if moves(f.shoot) {
		return verdict{action: migrateShoot, operation: corev1beta1.LastOperationTypeMigrate, reason: "it moves to another seed"}
	}
	operation := nextOperation(last)
	switch {
	case last == nil:
		return verdict{action: reconcileShoot, operation: operation, reason: "it is new"}
	case last.State != corev1beta1.LastOperationStateSucceeded:
		return verdict{action: reconcileShoot, operation: operation, reason: "its last operation is not done"}
	case operation == corev1beta1.LastOperationTypeRestore:
		return verdict{action: reconcileShoot, operation: operation, reason: "it has moved to this seed"}
	case f.shoot.Generation != f.shoot.Status.ObservedGeneration:
		return verdict{action: reconcileShoot, operation: operation, reason: "it has changed"}
	case rotating(f.shoot):
		return verdict{action: reconcileShoot, operation: operation, reason: "its rotation goes on"}
	}
	return verdict{action: idle}
}

// responsible returns the name of the seed whose gardenlet is responsible for a shoot: the one that its control plane is on until that has released it,
// and then the one that it is for. It is empty if it is for none.
func responsible(shoot *corev1beta1.Shoot) string {
	if shoot.Spec.SeedName == nil {
		return ""
	}
	return cmp.Or(ptr.Deref(shoot.Status.SeedName, ""), *shoot.Spec.SeedName)
}

// moves is whether the control plane of a shoot is on another seed than the one that it is for.
func moves(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.SeedName != nil && responsible(shoot) != *shoot.Spec.SeedName
}

// nextOperation returns the next operation of a shoot that does not move: the last one if it has not succeeded, else a reconciliation. A shoot whose
// control plane was released is restored, also if that was not finished and the shoot is for its former seed again: extensions do not reconcile what
// they have released.
func nextOperation(last *corev1beta1.LastOperation) corev1beta1.LastOperationType {
	switch {
	case last == nil:
		return corev1beta1.LastOperationTypeCreate
	case last.Type == corev1beta1.LastOperationTypeMigrate:
		return corev1beta1.LastOperationTypeRestore
	case last.State != corev1beta1.LastOperationStateSucceeded &&
		(last.Type == corev1beta1.LastOperationTypeCreate || last.Type == corev1beta1.LastOperationTypeRestore):
		return last.Type
	}
	return corev1beta1.LastOperationTypeReconcile
}

// mayOverwrite is whether the owner of a shoot may change how often it is reconciled.
func mayOverwrite(f facts) bool {
	return f.shoot.Namespace == constants.GardenNamespace || f.config.RespectSyncPeriodOverwrite != nil && *f.config.RespectSyncPeriodOverwrite
}

// ignored is whether the shoot is not to be reconciled. An invalid value counts as false.
func ignored(f facts) bool {
	value, _ := strconv.ParseBool(f.shoot.Annotations[constants.ShootIgnore])
	return value && mayOverwrite(f)
}

// forced is whether a shoot is deleted by force: its owner takes care of what is left of it in the infrastructure. An invalid value counts
// as false.
func forced(shoot *corev1beta1.Shoot) bool {
	force, _ := strconv.ParseBool(shoot.Annotations[constants.ConfirmationForceDeletion])
	return force && shoot.DeletionTimestamp != nil
}

// seedUnready returns why shoots of a seed cannot be changed now, or nothing. Its components have to be those of this gardenlet.
func seedUnready(seed *corev1beta1.Seed, version string) string {
	switch {
	case seed == nil:
		return "its seed was not found"
	case seed.ShootReconciliationsStopped():
		return "an operator has stopped the reconciliation of shoots of its seed"
	case seed.Status.Gardener == nil || seed.Status.Gardener.Version != version:
		return "its seed was not reconciled by this version of the gardenlet yet"
	case seed.Status.ObservedGeneration < seed.Generation:
		return "its seed has changed and was not reconciled yet"
	}
	ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	switch {
	case ready == nil:
		return "its seed has not reported whether it is ready"
	case ready.Status != corev1beta1.ConditionTrue:
		return "its seed is not ready: " + ready.Message
	}
	return ""
}

// nextRegular is when a shoot without changes is reconciled again. What a gardenlet finds overdue at its start, because none has run for long, is spread over
// the period: it would reconcile all shoots at once, just after an upgrade.
func nextRegular(f facts) time.Time {
	last := f.shoot.Status.LastOperation.LastUpdateTime.Time
	if confined(f) {
		return inWindow(f, last)
	}
	period := f.config.SyncPeriod.Duration
	if mayOverwrite(f) {
		if own, err := time.ParseDuration(f.shoot.Annotations[constants.ShootSyncPeriod]); err == nil {
			period = max(period, own)
		}
	}
	// Up to a tenth later, so that shoots that were created together drift apart.
	next := last.Add(period + shard.Delay(f.shoot.UID, last, period/10))
	if next.Before(f.started) {
		return f.started.Add(shard.Delay(f.shoot.UID, f.started, f.config.SyncPeriod.Duration))
	}
	return next
}

// confined is whether a shoot is reconciled in its maintenance time window only.
func confined(f facts) bool {
	if f.config.ReconcileInMaintenanceOnly != nil && *f.config.ReconcileInMaintenanceOnly {
		return true
	}
	m := f.shoot.Spec.Maintenance
	return m != nil && m.ConfineSpecUpdateRollout != nil && *m.ConfineSpecUpdateRollout
}

// inWindow is the next time in the maintenance time window of a shoot, which differs between shoots. A shoot is reconciled once per window.
func inWindow(f facts, last time.Time) time.Time {
	begin, length, ok := observed.MaintenanceWindow(f.shoot, f.now)
	if !ok {
		return last.Add(24 * time.Hour)
	}
	if !last.Before(begin) { // done in this one, or after it
		begin = begin.Add(24 * time.Hour)
	}
	at, end := begin.Add(shard.Delay(f.shoot.UID, begin, length*9/10)), begin.Add(length)
	switch {
	case at.Before(f.now) && !f.now.Before(end):
		return at.Add(24 * time.Hour)
	case at.Before(f.started) && f.started.Before(end): // missed in this one
		return f.started.Add(shard.Delay(f.shoot.UID, f.started, end.Sub(f.started)*9/10))
	}
	return at
}
