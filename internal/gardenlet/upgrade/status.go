package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// statusTimeout is the end of a write of the status, which may happen after the end of a pass.
const statusTimeout = 5 * time.Second

func condition(status corev1beta1.ConditionStatus, reason, message string) corev1beta1.Condition {
	return corev1beta1.Condition{Type: seedmanagementv1alpha1.GardenletReconciled, Status: status, Reason: reason, Message: message}
}

func reconciled(url string) corev1beta1.Condition {
	return condition(corev1beta1.ConditionTrue, "Reconciled", fmt.Sprintf("Gardenlet with chart from %s has been deployed", url))
}

func progressing(message string) corev1beta1.Condition {
	return condition(corev1beta1.ConditionProgressing, "Reconciling", message)
}

func deployed() corev1beta1.Condition {
	return progressing("The gardenlet has been deployed. It is rolled back if it does not work")
}

// waiting returns the condition while the guard starts or decides. After some minutes without progress, someone has to look.
func waiting(t *trial.Trial, guard guardState, now time.Time) corev1beta1.Condition {
	c, reason := deployed(), ""
	switch t.State {
	case trial.Preparing:
		c = progressing("Waiting for the process that rolls the new gardenlet back if it does not work")
	case trial.RollingBack:
		c = progressing("The new gardenlet is rolled back to the one before: " + t.Reason)
	case trial.Trying, trial.Succeeded, trial.RolledBack:
	}
	switch {
	case guard.Unready != nil:
		c.Message, reason = c.Message+". That process does not run: "+guard.Unready.Error(), "GuardNotReady"
	case t.State == trial.RollingBack && t.RestoreError != "":
		c.Message, reason = c.Message+". That fails: "+t.RestoreError, "RollbackFailed"
	}
	if reason != "" && now.Sub(t.Since.Time) >= waitTimeout {
		c.Status, c.Reason = corev1beta1.ConditionFalse, reason
	}
	return c
}

func unsettled(object string) corev1beta1.Condition {
	return condition(corev1beta1.ConditionFalse, "Unsettled", fmt.Sprintf("The gardenlet has been deployed, but something else changes %s each time", object))
}

func rolledBack(reason string) corev1beta1.Condition {
	return condition(corev1beta1.ConditionFalse, seedmanagementv1alpha1.GardenletReasonRolledBack,
		"The gardenlet has been deployed, and rolled back to the one before: "+reason+". Change the spec, or annotate the Gardenlet with gardener.cloud/operation=reconcile to try it again")
}

func unapproved() corev1beta1.Condition {
	return condition(corev1beta1.ConditionFalse, seedmanagementv1alpha1.GardenletReasonNotApproved, fmt.Sprintf(
		"The gardenlet has created the Gardenlet itself: it does not deploy a change before an operator has checked the spec and removed the annotation %s",
		seedmanagementv1alpha1.AnnotationCreatedByGardenlet))
}

// specError is an error that only another spec fixes.
type specError struct{ err error }

// Error implements error.
func (e *specError) Error() string { return e.err.Error() }

// Unwrap returns what is wrong.
func (e *specError) Unwrap() error { return e.err }

// registryError is an error of a registry. Its answer is for the log: it might come from a server that users cannot reach.
type registryError struct{ err error }

// Error implements error.
func (e *registryError) Error() string { return "pull chart: " + e.err.Error() }

// Unwrap returns the error of the registry.
func (e *registryError) Unwrap() error { return e.err }

func failed(err error) corev1beta1.Condition {
	message := err.Error()
	if registry := (*registryError)(nil); errors.As(err, &registry) {
		message = "the chart of spec.deployment.helm.ociRepository cannot be pulled: the log of the gardenlet has the error"
	}
	return condition(corev1beta1.ConditionFalse, "ReconcileError", message)
}

// report writes what differs in the status. It works after the end of the pass too.
func (r *reconciler) report(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet, condition corev1beta1.Condition) error {
	conditions, differs := kube.SetCondition(object.Status.Conditions, condition, r.Clock.Now())
	if !differs && object.Status.ObservedGeneration == object.Generation {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	after := object.DeepCopy()
	after.Status.Conditions, after.Status.ObservedGeneration = conditions, object.Generation
	// The gardener-operator writes a condition of its own to the same list.
	if err := r.gardenCache.Status().Patch(ctx, after, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write status of Gardenlet %q: %w", object.Name, err)
	}
	return nil
}
