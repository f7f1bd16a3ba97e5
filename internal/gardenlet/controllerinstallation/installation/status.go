package installation

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// statusTimeout is the end of a write of the status, which may happen after the end of a pass.
const statusTimeout = 5 * time.Second

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
		Message: "gardener-resource-manager has not applied the objects yet.",
	}
}

// withoutDeployment are the conditions of an extension whose ControllerRegistration has no deployment: its controllers are installed by other
// means.
func withoutDeployment() []corev1beta1.Condition {
	const reason, message = "NoDeployment", "The ControllerRegistration has no deployment, so that nothing is installed."
	return []corev1beta1.Condition{
		{Type: corev1beta1.ControllerInstallationValid, Status: corev1beta1.ConditionTrue, Reason: reason, Message: message},
		{Type: corev1beta1.ControllerInstallationInstalled, Status: corev1beta1.ConditionTrue, Reason: reason, Message: message},
		{Type: corev1beta1.ControllerInstallationHealthy, Status: corev1beta1.ConditionTrue, Reason: reason, Message: message},
		{Type: corev1beta1.ControllerInstallationProgressing, Status: corev1beta1.ConditionFalse, Reason: reason, Message: message},
	}
}

// writeConditions writes the conditions that differ. It works after the end of the pass too.
func (r *reconciler) writeConditions(ctx context.Context, ci *corev1beta1.ControllerInstallation, conditions ...corev1beta1.Condition) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
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
	if err := r.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(ci)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}
