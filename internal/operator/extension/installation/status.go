package installation

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
)

const (
	// reasonWaiting says that the Garden is not as far yet as the extension needs it.
	reasonWaiting = "GardenNotReconciled"
	// reasonDeleting says that objects of the extension are being deleted.
	reasonDeleting = "Deleting"
)

func installed(status corev1beta1.ConditionStatus, reason, message string) extension.Status {
	return extension.Status{Conditions: []corev1beta1.Condition{{
		Type: operatorv1alpha1.ExtensionInstalled, Status: status, Reason: reason, Message: message,
	}}}
}

func succeeded() extension.Status {
	return installed(corev1beta1.ConditionTrue, operatorv1alpha1.ReasonReconcileSuccess, "The extension is installed.")
}

// inRuntime is the status of an extension that stays in the runtime cluster only for the deletion of objects that it is responsible for.
func inRuntime() extension.Status {
	return installed(corev1beta1.ConditionTrue, operatorv1alpha1.ReasonInstalledInRuntime,
		"The extension is installed in the runtime cluster only, and is deleted when no object of class garden needs it.")
}

func failed(e *operatorv1alpha1.Extension, plan plan, err error) extension.Status {
	reason := operatorv1alpha1.ReasonReconcileFailed
	if plan.going {
		reason = operatorv1alpha1.ReasonDeleteFailed
	}
	status := installed(corev1beta1.ConditionFalse, reason, err.Error())
	status.ObservedGeneration = e.Generation
	return status
}

// upToDate reports whether an Extension was installed as its spec says it.
func upToDate(e *operatorv1alpha1.Extension) bool {
	before := kube.Condition(e.Status.Conditions, operatorv1alpha1.ExtensionInstalled)
	return before != nil && before.Status == corev1beta1.ConditionTrue && ofInstallation(*before) && e.Status.ObservedGeneration == e.Generation
}

// stays is the status of an extension that is installed and up to date, and could not be reconciled now.
func stays(plan plan, err error) extension.Status {
	reason := operatorv1alpha1.ReasonReconcileSuccess
	if plan.going {
		reason = operatorv1alpha1.ReasonInstalledInRuntime
	}
	return installed(corev1beta1.ConditionTrue, reason, "The extension is installed, but cannot be updated: "+err.Error())
}

// ofInstallation reports whether a condition is of a pass that has installed what it planned.
func ofInstallation(c corev1beta1.Condition) bool {
	return c.Reason == operatorv1alpha1.ReasonReconcileSuccess || c.Reason == operatorv1alpha1.ReasonInstalledInRuntime
}

// warn records a status that differs as an event, too: the condition alone stays True.
func (r *reconciler) warn(e *operatorv1alpha1.Extension, status extension.Status) {
	message := status.Conditions[0].Message
	if before := kube.Condition(e.Status.Conditions, operatorv1alpha1.ExtensionInstalled); before != nil && before.Message == message {
		return
	}
	r.recorder.Eventf(e, nil, corev1.EventTypeWarning, constants.EventReconcileError, constants.EventActionReconcile, "%s", kube.Shorten(message, kube.MaxNote))
}

// deleted is the status of an extension whose objects are deleted. The care controller, which may have ended with the virtual garden, has nothing
// to report any more.
func deleted() extension.Status {
	status := installed(corev1beta1.ConditionFalse, operatorv1alpha1.ReasonDeleteSuccessful, "All objects of the extension are deleted.")
	status.Without = []corev1beta1.ConditionType{
		operatorv1alpha1.ExtensionControllerInstallationsHealthy, operatorv1alpha1.ExtensionRuntimeHealthy, operatorv1alpha1.ExtensionAdmissionHealthy,
	}
	return status
}

// absent is the status of an extension that is not installed, while there is no Garden, or one that is being deleted. That its objects were deleted
// with the Garden stays.
func absent(e *operatorv1alpha1.Extension, garden *operatorv1alpha1.Garden) extension.Status {
	before := kube.Condition(e.Status.Conditions, operatorv1alpha1.ExtensionInstalled)
	if garden != nil || before != nil && before.Reason == operatorv1alpha1.ReasonDeleteSuccessful {
		return deleted()
	}
	return installed(corev1beta1.ConditionFalse, operatorv1alpha1.ReasonNoGardenFound, "There is no Garden.")
}

// pending is the status of an extension that waits. While an operation of the Garden runs, an extension that is installed stays so.
func pending(e *operatorv1alpha1.Extension, wait *waiting) extension.Status {
	if wait.deletion {
		return installed(corev1beta1.ConditionProgressing, reasonDeleting, wait.message)
	}
	if before := kube.Condition(e.Status.Conditions, operatorv1alpha1.ExtensionInstalled); before != nil && before.Status == corev1beta1.ConditionTrue {
		return extension.Status{}
	}
	return installed(corev1beta1.ConditionProgressing, reasonWaiting, wait.message)
}

// report writes the status. Only a pass that has installed everything has acted on the generation.
func (r *reconciler) report(ctx context.Context, e *operatorv1alpha1.Extension, status extension.Status) error {
	for _, condition := range status.Conditions {
		if ofInstallation(condition) {
			status.ObservedGeneration = e.Generation
		}
	}
	return extension.Write(ctx, r.runtimeCache, e, r.Clock.Now(), status)
}
