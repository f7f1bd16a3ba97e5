package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// statusTimeout is the end of a write of the status, which may happen after the end of a pass.
const statusTimeout = 5 * time.Second

func registered(name string) corev1beta1.Condition {
	return corev1beta1.Condition{
		Type: seedmanagementv1alpha1.ManagedSeedSeedRegistered, Status: corev1beta1.ConditionTrue, Reason: "EventReconciled",
		Message: fmt.Sprintf("Seed %s has been registered.", name),
	}
}

func waiting(name string) corev1beta1.Condition {
	return corev1beta1.Condition{
		Type: seedmanagementv1alpha1.ManagedSeedSeedRegistered, Status: corev1beta1.ConditionProgressing, Reason: "EventReconciling",
		Message: fmt.Sprintf("The gardenlet has been deployed. It has not registered Seed %s yet.", name),
	}
}

// errUnapproved is for a Gardenlet that no operator has approved.
var errUnapproved = fmt.Errorf("the gardenlet has created the Gardenlet itself: it is not deployed before an operator has checked its spec and removed the annotation %s",
	seedmanagementv1alpha1.AnnotationCreatedByGardenlet)

func failed(err error) corev1beta1.Condition {
	message := err.Error()
	if foreign := (*foreignError)(nil); errors.As(err, &foreign) {
		message = foreign.what + ": the log of gardener-operator has the error"
	}
	return corev1beta1.Condition{
		Type: seedmanagementv1alpha1.ManagedSeedSeedRegistered, Status: corev1beta1.ConditionFalse, Reason: "ReconcileError", Message: message,
	}
}

// writeCondition writes a condition that differs. The Gardenlet is changed accordingly. It works after the end of the pass too.
func (r *reconciler) writeCondition(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet, condition corev1beta1.Condition) error {
	conditions, differs := kube.SetCondition(gardenlet.Status.Conditions, condition, r.Clock.Now())
	if !differs {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	after := gardenlet.DeepCopy()
	after.Status.Conditions = conditions
	// The gardenlet writes a condition of its own to the same list.
	patch := client.MergeFromWithOptions(gardenlet, client.MergeFromWithOptimisticLock{})
	if err := r.virtualCache.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("write status of Gardenlet %q: %w", gardenlet.Name, err)
	}
	after.DeepCopyInto(gardenlet)
	return nil
}
