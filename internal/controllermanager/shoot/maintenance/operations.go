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

// askFor puts into the annotations of a Shoot what its gardenlet is to do: to reconcile it, with the operations and tasks that waited for
// the maintenance and the renewals that are due. It returns those that it asks for, and what is impossible.
func askFor(shoot *corev1beta1.Shoot, changed bool, tasks []string, now time.Time) (asked, failures []string) {
	pending := kube.SplitAnnotation(shoot.Annotations[constants.GardenerOperation], constants.OperationsSeparator)
	pending = slices.DeleteFunc(pending, func(operation string) bool { return operation == constants.ShootOperationMaintain })
	last := shoot.Status.LastOperation
	failed := last != nil && last.State == corev1beta1.LastOperationStateFailed
	switch {
	case slices.Contains(pending, constants.ShootOperationRetry), slices.Contains(pending, constants.ShootOperationForceInPlaceUpdate), last == nil:
		// It is begun anew anyway. What waits for the maintenance waits for the next one.
	case failed:
		// Changes that are not rolled out at once would not be tried, either.
		if changed || shoot.Annotations[constants.FailedShootNeedsRetryOperation] == "true" {
			pending = []string{constants.ShootOperationRetry}
			asked = pending
		}
	default:
		pending, asked, failures = operations(shoot, pending, now)
		delete(shoot.Annotations, constants.GardenerMaintenanceOperation)
	}
	delete(shoot.Annotations, constants.FailedShootNeedsRetryOperation)
	delete(shoot.Annotations, constants.GardenerOperation)
	kube.AddToAnnotation(&shoot.ObjectMeta, constants.GardenerOperation, constants.OperationsSeparator, pending...)
	kube.AddToAnnotation(&shoot.ObjectMeta, constants.ShootTasks, constants.TasksSeparator, tasks...)
	return asked, failures
}

// operations returns what is to be asked for of a Shoot that works, and which of it waited for the maintenance or is due.
func operations(shoot *corev1beta1.Shoot, pending []string, now time.Time) (all, asked, failures []string) {
	// What goes together with a reconciliation is possible in a maintenance.
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
		_ = try(operation) // one that has become impossible has begun in the meantime
	}
	for _, operation := range kube.SplitAnnotation(shoot.Annotations[constants.GardenerMaintenanceOperation], constants.OperationsSeparator) {
		if err := try(operation); err != nil {
			failures = append(failures, err.Error())
		} else if operation != constants.GardenerOperationReconcile {
			asked = append(asked, operation)
		}
	}
	for _, operation := range renewals(shoot, now) {
		// A cluster that sleeps, or that is at it, is left alone until a later maintenance.
		if before := len(all); try(operation) == nil && len(all) > before {
			asked = append(asked, operation)
		}
	}
	return all, asked, failures
}

// renewals returns the operations that renew credentials which are older than their owner wants.
func renewals(shoot *corev1beta1.Shoot, now time.Time) []string {
	maintenance := shoot.Spec.Maintenance
	if maintenance == nil || maintenance.AutoRotation == nil || maintenance.AutoRotation.Credentials == nil {
		return nil
	}
	wanted := maintenance.AutoRotation.Credentials
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
	check := func(config *corev1beta1.MaintenanceRotationConfig, begun *metav1.Time, operation string) {
		if config == nil || config.RotationPeriod == nil || config.RotationPeriod.Duration == 0 {
			return
		}
		if begun == nil {
			begun = &shoot.CreationTimestamp
		}
		if now.Sub(begun.Time) >= config.RotationPeriod.Duration {
			due = append(due, operation)
		}
	}
	check(wanted.Observability, observability, constants.OperationRotateObservabilityCredentials)
	if shoot.Spec.Provider.SSHAccessEnabled() {
		check(wanted.SSHKeypair, ssh, constants.OperationRotateSSHKeypair)
	}
	check(wanted.ETCDEncryptionKey, encryption, constants.OperationRotateETCDEncryptionKey)
	return due
}
