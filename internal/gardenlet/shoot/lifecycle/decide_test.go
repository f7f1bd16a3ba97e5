package lifecycle

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// reconciled are the facts of a shoot that was reconciled ten minutes ago.
func reconciled() facts {
	shoot := &corev1beta1.Shoot{}
	shoot.Name, shoot.Namespace, shoot.UID, shoot.Generation = "crazy-botany", "garden-dev", "1", 3
	shoot.Finalizers = []string{constants.FinalizerGardenerName}
	shoot.Annotations = map[string]string{}
	shoot.Spec.SeedName = new("here")
	shoot.Status = corev1beta1.ShootStatus{
		UID: "1", SeedName: new("here"), ObservedGeneration: 3, Gardener: corev1beta1.Gardener{Version: "v1"},
		LastOperation: &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100,
			LastUpdateTime: metav1.NewTime(noon.Add(-10 * time.Minute)),
		},
	}
	seed := &corev1beta1.Seed{}
	seed.Status.Gardener = &corev1beta1.Gardener{Version: "v1"}
	seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}}
	return facts{
		shoot: shoot, seed: seed, seedName: "here", version: "v1", now: noon,
		config: gardenletconfigv1alpha1.ShootControllerConfiguration{SyncPeriod: &metav1.Duration{Duration: time.Hour}},
	}
}

func TestDecide(t *testing.T) {
	const (
		create, reconcile, remove_ = corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationTypeDelete
		migrate, restore           = corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeRestore
	)
	failed := func(f *facts) {
		f.shoot.Status.LastOperation.State = corev1beta1.LastOperationStateFailed
	}
	encryption := func(f *facts, phase corev1beta1.CredentialsRotationPhase) {
		f.shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: phase, AutoCompleteAfterPrepared: new(true)},
		}}
	}
	cas := func(f *facts, tolerance corev1beta1.FailureToleranceType) {
		f.shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{Phase: corev1beta1.RotationCompleting, LastCompletionTriggeredTime: new(metav1.NewTime(noon))},
		}}
		if tolerance != "" {
			f.shoot.Spec.ControlPlane = &corev1beta1.ControlPlane{
				HighAvailability: &corev1beta1.HighAvailability{FailureTolerance: corev1beta1.FailureTolerance{Type: tolerance}},
			}
		}
		finishRotations(f.shoot, metav1.NewTime(noon))
	}
	last := func(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState) func(*facts) {
		return func(f *facts) { f.shoot.Status.LastOperation.Type, f.shoot.Status.LastOperation.State = typ, state }
	}
	deleted := func(f *facts) { f.shoot.DeletionTimestamp = new(metav1.NewTime(noon)) }
	for name, tc := range map[string]struct {
		change    func(*facts)
		want      action
		operation corev1beta1.LastOperationType
	}{
		"nothing to do":               {change: func(*facts) {}, want: idle},
		"of another seed":             {change: func(f *facts) { f.shoot.Spec.SeedName, f.shoot.Status.SeedName = new("there"), new("there") }, want: idle},
		"for another seed, not begun": {change: func(f *facts) { f.shoot.Spec.SeedName, f.shoot.Status = new("there"), corev1beta1.ShootStatus{} }, want: idle},
		"moves away":                  {change: func(f *facts) { f.shoot.Spec.SeedName = new("there") }, want: migrateShoot, operation: migrate},
		"moves away, after a failure": {change: func(f *facts) {
			last(migrate, corev1beta1.LastOperationStateError)(f)
			f.shoot.Spec.SeedName = new("there")
		}, want: migrateShoot, operation: migrate},
		"moves away, failed": {change: func(f *facts) {
			last(migrate, corev1beta1.LastOperationStateFailed)(f)
			f.shoot.Spec.SeedName = new("there")
		}, want: writeCluster},
		"moves away, and is deleted": {change: func(f *facts) {
			f.shoot.Spec.SeedName = new("there")
			f.shoot.DeletionTimestamp = new(metav1.NewTime(noon))
		}, want: deleteShoot, operation: remove_},
		"moves away while its seed is not ready": {change: func(f *facts) {
			f.shoot.Spec.SeedName = new("there")
			f.seed.Status.Conditions[0].Status = corev1beta1.ConditionFalse
		}, want: postpone, operation: migrate},
		"has moved here":                {change: last(migrate, corev1beta1.LastOperationStateSucceeded), want: reconcileShoot, operation: restore},
		"the move was aborted":          {change: last(migrate, corev1beta1.LastOperationStateAborted), want: reconcileShoot, operation: restore},
		"came back half way":            {change: last(migrate, corev1beta1.LastOperationStateError), want: reconcileShoot, operation: restore},
		"restoration in error":          {change: last(restore, corev1beta1.LastOperationStateError), want: reconcileShoot, operation: restore},
		"restored":                      {change: last(restore, corev1beta1.LastOperationStateSucceeded), want: idle},
		"restored, and changed":         {change: func(f *facts) { last(restore, corev1beta1.LastOperationStateSucceeded)(f); f.shoot.Generation++ }, want: reconcileShoot, operation: reconcile},
		"not scheduled":                 {change: func(f *facts) { f.shoot.Spec.SeedName = nil }, want: idle},
		"control plane on another seed": {change: func(f *facts) { f.shoot.Status.SeedName = new("there") }, want: idle},
		"new":                           {change: func(f *facts) { f.shoot.Status = corev1beta1.ShootStatus{} }, want: reconcileShoot, operation: create},
		"changed":                       {change: func(f *facts) { f.shoot.Generation++ }, want: reconcileShoot, operation: reconcile},
		"in error":                      {change: func(f *facts) { f.shoot.Status.LastOperation.State = corev1beta1.LastOperationStateError }, want: reconcileShoot, operation: reconcile},
		"interrupted":                   {change: func(f *facts) { f.shoot.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing }, want: reconcileShoot, operation: reconcile},
		"failed":                        {change: failed, want: writeCluster},
		"failed, retried":               {change: func(f *facts) { failed(f); f.shoot.Generation++ }, want: reconcileShoot, operation: reconcile},
		"failed, new agent":             {change: func(f *facts) { failed(f); f.version = "v2"; f.seed.Status.Gardener.Version = "v2" }, want: reconcileShoot, operation: reconcile},
		"creation in error": {change: func(f *facts) {
			f.shoot.Status.LastOperation.Type, f.shoot.Status.LastOperation.State = create, corev1beta1.LastOperationStateError
		}, want: reconcileShoot, operation: create},
		"rotation is begun": {change: func(f *facts) {
			encryption(f, corev1beta1.RotationPreparing)
			finishRotations(f.shoot, metav1.NewTime(noon))
		}, want: reconcileShoot, operation: reconcile},
		"rotation is done": {change: func(f *facts) {
			encryption(f, corev1beta1.RotationCompleting)
			finishRotations(f.shoot, metav1.NewTime(noon))
		}, want: idle},
		"CAs are rotated": {change: func(f *facts) { cas(f, "") }, want: idle},
		"CAs are rotated, members of etcd trust the old ones": {change: func(f *facts) {
			cas(f, corev1beta1.FailureToleranceTypeNode)
		}, want: reconcileShoot, operation: reconcile},
		"CAs are rotated, members of etcd trust the new ones only": {change: func(f *facts) {
			cas(f, corev1beta1.FailureToleranceTypeNode)
			finishRotations(f.shoot, metav1.NewTime(noon))
		}, want: idle},
		"rotation waits for its owner": {change: func(f *facts) { encryption(f, corev1beta1.RotationPrepared) }, want: idle},
		"due":                          {change: func(f *facts) { f.now = noon.Add(2 * time.Hour) }, want: reconcileShoot, operation: reconcile},
		"ignored, not allowed": {change: func(f *facts) {
			f.shoot.Generation++
			f.shoot.Annotations[constants.ShootIgnore] = "true"
		}, want: reconcileShoot, operation: reconcile},
		"ignored, allowed": {change: func(f *facts) {
			f.shoot.Generation++
			f.shoot.Annotations[constants.ShootIgnore] = "true"
			f.config.RespectSyncPeriodOverwrite = new(true)
		}, want: writeCluster},
		"ignored, in the garden": {change: func(f *facts) {
			f.shoot.Generation++
			f.shoot.Namespace, f.shoot.Annotations[constants.ShootIgnore] = constants.GardenNamespace, "true"
		}, want: writeCluster},
		"reconciliation is stopped": {change: func(f *facts) {
			f.shoot.Generation++
			f.seed.Annotations = map[string]string{constants.EmergencyStopShootReconciliations: "true"}
		}, want: postpone, operation: reconcile},
		"reconciliation is stopped, and nothing to do": {change: func(f *facts) {
			f.seed.Annotations = map[string]string{constants.EmergencyStopShootReconciliations: "true"}
		}, want: idle},
		"seed of another version": {change: func(f *facts) { f.shoot.Generation++; f.seed.Status.Gardener.Version = "v0" }, want: postpone, operation: reconcile},
		"seed has changed":        {change: func(f *facts) { f.shoot.Generation++; f.seed.Generation++ }, want: postpone, operation: reconcile},
		"seed is not known to be ready": {change: func(f *facts) {
			f.shoot.Generation++
			f.seed.Status.Conditions[0].Status = corev1beta1.ConditionUnknown
		}, want: postpone, operation: reconcile},
		"seed has no condition yet":   {change: func(f *facts) { f.shoot.Status, f.seed.Status.Conditions = corev1beta1.ShootStatus{}, nil }, want: postpone, operation: create},
		"deleted, seed is not ready":  {change: func(f *facts) { deleted(f); f.seed.Status.Gardener = nil }, want: postpone, operation: remove_},
		"due, but seed is not ready":  {change: func(f *facts) { f.now, f.seed.Status.Gardener = noon.Add(2*time.Hour), nil }, want: idle},
		"just before the next period": {change: func(f *facts) { f.now = noon.Add(49*time.Minute + 59*time.Second) }, want: idle},
		"deleted":                     {change: deleted, want: deleteShoot, operation: remove_},
		"deleted, failed":             {change: func(f *facts) { deleted(f); failed(f) }, want: writeCluster},
		"deleted by force, failed": {change: func(f *facts) {
			deleted(f)
			failed(f)
			f.shoot.Annotations[constants.ConfirmationForceDeletion] = "true"
		}, want: deleteShoot, operation: remove_},
		"deleted, force declined": {change: func(f *facts) {
			deleted(f)
			failed(f)
			f.shoot.Annotations[constants.ConfirmationForceDeletion] = "false"
		}, want: writeCluster},
		"deleted, never begun":       {change: func(f *facts) { deleted(f); f.shoot.Status = corev1beta1.ShootStatus{} }, want: removeFinalizer, operation: remove_},
		"deleted, without finalizer": {change: func(f *facts) { deleted(f); f.shoot.Finalizers = nil }, want: idle},
		"longer period, not allowed": {change: func(f *facts) {
			f.now, f.shoot.Annotations[constants.ShootSyncPeriod] = noon.Add(2*time.Hour), "24h"
		}, want: reconcileShoot, operation: reconcile},
		"longer period": {change: func(f *facts) {
			f.now, f.shoot.Annotations[constants.ShootSyncPeriod], f.config.RespectSyncPeriodOverwrite = noon.Add(2*time.Hour), "24h", new(true)
		}, want: idle},
		"shorter period": {change: func(f *facts) {
			f.shoot.Annotations[constants.ShootSyncPeriod], f.config.RespectSyncPeriodOverwrite = "1m", new(true)
		}, want: idle},
	} {
		t.Run(name, func(t *testing.T) {
			f := reconciled()
			tc.change(&f)
			got := decide(f)
			if got.action != tc.want || got.operation != tc.operation {
				t.Errorf("decide() is %q %q (%s), want %q %q", got.action, got.operation, got.reason, tc.want, tc.operation)
			}
		})
	}
}

func TestMaintenanceWindow(t *testing.T) {
	at := func(hour, minute int) time.Time { return time.Date(2026, 3, 4, hour, minute, 0, 0, time.UTC) }
	for name, tc := range map[string]struct {
		begin, end string
		last, now  time.Time
		// from and to bound when the shoot is reconciled.
		from, to time.Time
	}{
		"before it":           {begin: "140000+0000", end: "150000+0000", last: at(0, 0), now: at(12, 0), from: at(14, 0).AddDate(0, 0, 0), to: at(15, 0)},
		"done today":          {begin: "100000+0000", end: "110000+0000", last: at(10, 30), now: at(12, 0), from: at(10, 0).AddDate(0, 0, 1), to: at(11, 0).AddDate(0, 0, 1)},
		"over midnight":       {begin: "230000+0000", end: "010000+0000", last: at(0, 10), now: at(0, 20), from: at(23, 0), to: at(23, 0).Add(2 * time.Hour)},
		"other time zone":     {begin: "160000+0200", end: "170000+0200", last: at(0, 0), now: at(12, 0), from: at(14, 0), to: at(15, 0)},
		"missed, is at once":  {begin: "113000+0000", end: "123000+0000", last: at(0, 0), now: at(12, 29), from: at(11, 30), to: at(12, 30)},
		"missed, is tomorrow": {begin: "100000+0000", end: "110000+0000", last: at(0, 0), now: at(12, 0), from: at(10, 0).AddDate(0, 0, 1), to: at(11, 0).AddDate(0, 0, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			f := reconciled()
			f.config.ReconcileInMaintenanceOnly = new(true)
			f.now, f.shoot.Status.LastOperation.LastUpdateTime = tc.now, metav1.NewTime(tc.last)
			f.shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: tc.begin, End: tc.end}}
			if got := nextRegular(f); got.Before(tc.from) || !got.Before(tc.to) {
				t.Errorf("it is at %s, want between %s and %s", got, tc.from, tc.to)
			}
		})
	}
}

// A gardenlet that starts after a long time, such as a new version, finds the regular reconciliation of all shoots overdue.
func TestSpreadAfterStart(t *testing.T) {
	const shoots, parts = 600, 6
	window := func(f *facts) {
		f.config.ReconcileInMaintenanceOnly = new(true)
		f.shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "100000+0000", End: "130000+0000"}}
	}
	for name, tc := range map[string]struct {
		change func(*facts)
		over   time.Duration
	}{
		"over the period": {func(*facts) {}, time.Hour},
		"over the period of the configuration": {func(f *facts) {
			f.shoot.Namespace, f.shoot.Annotations[constants.ShootSyncPeriod] = constants.GardenNamespace, "2h"
		}, time.Hour},
		"over most of the rest of the maintenance time window": {window, 54 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var counts [parts]int
			for i := range shoots {
				f := reconciled()
				tc.change(&f)
				f.shoot.UID = types.UID(fmt.Sprint("4a3b-", i))
				f.now, f.started = noon, noon
				f.shoot.Status.LastOperation.LastUpdateTime = metav1.NewTime(noon.Add(-24 * time.Hour))
				at := nextRegular(f).Sub(noon)
				if at < 0 || at >= tc.over {
					t.Fatalf("shoot %d is reconciled after %s", i, at)
				}
				counts[int(at*parts/tc.over)]++
				f.now = noon.Add(at)
				if got := decide(f); got.action != reconcileShoot {
					t.Errorf("shoot %d is not reconciled when it is time: %s", i, got.reason)
				}
			}
			for part, count := range counts {
				if count < shoots/parts/2 || count > shoots/parts*3/2 {
					t.Errorf("part %d of the time has %d of %d shoots", part, count, shoots)
				}
			}
		})
	}
}
