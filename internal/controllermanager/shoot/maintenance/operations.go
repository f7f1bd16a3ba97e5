package maintenance

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/validation/core"
)

var annotations = field.NewPath("metadata", "annotations")

// annotate writes to the annotations of a Shoot that its gardenlet has to reconcile it, with the operations and tasks that waited for the
// maintenance and the rotations that are due. It returns these operations, and messages about those that are rejected.
func annotate(shoot *corev1beta1.Shoot, changed bool, tasks []string, now time.Time) (started, failures []string) {
	pending := kube.SplitAnnotation(shoot.Annotations[constants.GardenerOperation], constants.OperationsSeparator)
	pending = slices.DeleteFunc(pending, func(operation string) bool { return operation == constants.ShootOperationMaintain })
	last := shoot.Status.LastOperation
	failed := last != nil && last.State == corev1beta1.LastOperationStateFailed
	switch {
	case slices.Contains(pending, constants.ShootOperationRetry), slices.Contains(pending, constants.ShootOperationForceInPlaceUpdate), last == nil:
		// The Shoot is reconciled anyway. Operations that wait for the maintenance wait for the next one.
	case failed:
		// Changes would not be rolled out without a retry.
		if changed || shoot.Annotations[constants.FailedShootNeedsRetryOperation] == "true" {
			pending = []string{constants.ShootOperationRetry}
			started = pending
		}
	default:
		pending, started, failures = operations(shoot, pending, now)
		delete(shoot.Annotations, constants.GardenerMaintenanceOperation)
	}
	delete(shoot.Annotations, constants.FailedShootNeedsRetryOperation)
	delete(shoot.Annotations, constants.GardenerOperation)
	kube.AddToAnnotation(&shoot.ObjectMeta, constants.GardenerOperation, constants.OperationsSeparator, pending...)
	kube.AddToAnnotation(&shoot.ObjectMeta, constants.ShootTasks, constants.TasksSeparator, tasks...)
	return started, failures
}

// operations returns all operations for a Shoot that has not failed, and those of them that waited for the maintenance or are due.
func operations(shoot *corev1beta1.Shoot, pending []string, now time.Time) (all, started, failures []string) {
	// Operations that can be combined with a reconciliation are possible in a maintenance.
	all = []string{constants.GardenerOperationReconcile}
	try := func(operation string) error {
		if slices.Contains(all, operation) {
			return nil
		}
		with := append(slices.Clone(all), operation)
		errs := core.ValidateShootOperations(shoot, strings.Join(with, constants.OperationsSeparator), annotations.Key(constants.GardenerMaintenanceOperation))
		if len(errs) == 0 {
			all = with
		}
		return errs.ToAggregate()
	}
	for _, operation := range pending {
		_ = try(operation) // an operation that is not possible any more has been started already
	}
	for _, operation := range kube.SplitAnnotation(shoot.Annotations[constants.GardenerMaintenanceOperation], constants.OperationsSeparator) {
		if err := try(operation); err != nil {
			failures = append(failures, err.Error())
		} else if operation != constants.GardenerOperationReconcile {
			started = append(started, operation)
		}
	}
	for _, operation := range rotations(shoot, now) {
		// A cluster that is hibernated, or in the middle of the rotation, waits for a later maintenance.
		if before := len(all); try(operation) == nil && len(all) > before {
			started = append(started, operation)
		}
	}
	return all, started, failures
}

// rotations returns the operations that rotate credentials which are older than their rotation period.
func rotations(shoot *corev1beta1.Shoot, now time.Time) []string {
	maintenance := shoot.Spec.Maintenance
	if maintenance == nil || maintenance.AutoRotation == nil || maintenance.AutoRotation.Credentials == nil {
		return nil
	}
	config := maintenance.AutoRotation.Credentials
	rotation := &corev1beta1.ShootCredentialsRotation{}
	if c := shoot.Status.Credentials; c != nil && c.Rotation != nil {
		rotation = c.Rotation
	}
	var observability, ssh, encryption *metav1.Time
	if r := rotation.Observability; r != nil {
		observability = r.LastInitiationTime
	}
	if r := rotation.SSHKeypair; r != nil {
		ssh = r.LastInitiationTime
	}
	if r := rotation.ETCDEncryptionKey; r != nil {
		encryption = r.LastInitiationTime
	}
	var due []string
	check := func(c *corev1beta1.MaintenanceRotationConfig, initiated *metav1.Time, operation string) {
		if c == nil || c.RotationPeriod == nil || c.RotationPeriod.Duration == 0 {
			return
		}
		if initiated == nil {
			initiated = &shoot.CreationTimestamp
		}
		if now.Sub(initiated.Time) >= c.RotationPeriod.Duration {
			due = append(due, operation)
		}
	}
	check(config.Observability, observability, constants.OperationRotateObservabilityCredentials)
	if shoot.Spec.Provider.SSHAccessEnabled() {
		check(config.SSHKeypair, ssh, constants.OperationRotateSSHKeypair)
	}
	check(config.ETCDEncryptionKey, encryption, constants.OperationRotateETCDEncryptionKey)
	return due
}
