package installation

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// reportTimeout is what the write of the status may take, also after the end of a pass.
const reportTimeout = 5 * time.Second

func valid() corev1beta1.Condition {
	return corev1beta1.Condition{
		Type: corev1beta1.ControllerInstallationValid, Status: corev1beta1.ConditionTrue, Reason: "RegistrationValid",
		Message: "Chart could be rendered successfully.",
	}
}

func invalid(err error) corev1beta1.Condition {
	return corev1beta1.Condition{
		Type: corev1beta1.ControllerInstallationValid, Status: corev1beta1.ConditionFalse, Reason: "ChartCannotBeRendered", Message: err.Error(),
	}
}

func failed(err error) corev1beta1.Condition {
	return corev1beta1.Condition{
		Type: corev1beta1.ControllerInstallationInstalled, Status: corev1beta1.ConditionFalse, Reason: "InstallationFailed", Message: err.Error(),
	}
}

func pending() corev1beta1.Condition {
	return corev1beta1.Condition{
		Type: corev1beta1.ControllerInstallationInstalled, Status: corev1beta1.ConditionFalse, Reason: "InstallationPending",
		Message: "The resource manager has yet to apply the objects.",
	}
}

// foreign are the conditions of an extension whose registration has no deployment: its controllers are not ours to install, and what
// is known of them is what they write into the objects that they work on.
func foreign() []corev1beta1.Condition {
	const reason, message = "NoDeployment", "The registration has no deployment, so there is nothing to install."
	return []corev1beta1.Condition{
		{Type: corev1beta1.ControllerInstallationValid, Status: corev1beta1.ConditionTrue, Reason: reason, Message: message},
		{Type: corev1beta1.ControllerInstallationInstalled, Status: corev1beta1.ConditionTrue, Reason: reason, Message: message},
		{Type: corev1beta1.ControllerInstallationHealthy, Status: corev1beta1.ConditionTrue, Reason: reason, Message: message},
		{Type: corev1beta1.ControllerInstallationProgressing, Status: corev1beta1.ConditionFalse, Reason: reason, Message: message},
	}
}

// report sets conditions.
func (r *reconciler) report(ctx context.Context, ci *corev1beta1.ControllerInstallation, conditions ...corev1beta1.Condition) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	after, differs := ci.DeepCopy(), false
	for _, condition := range conditions {
		var changed bool
		after.Status.Conditions, changed = kube.SetCondition(after.Status.Conditions, condition, r.Clock.Now())
		differs = differs || changed
	}
	if !differs {
		return nil
	}
	if err := r.gardenClient.Status().Patch(ctx, after, client.StrategicMergeFrom(ci)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}
