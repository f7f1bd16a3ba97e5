package managedseed

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// statusTimeout is the end of a write of the status, which may happen after the end of a pass.
const statusTimeout = 5 * time.Second

func shootCondition(reconciled bool, shoot *corev1beta1.Shoot) corev1beta1.Condition {
	c := corev1beta1.Condition{
		Type: seedmanagementv1alpha1.ManagedSeedShootReconciled, Status: corev1beta1.ConditionTrue, Reason: "Reconciled",
		Message: fmt.Sprintf("Shoot %s has been reconciled", shoot.Name),
	}
	if !reconciled {
		c.Status, c.Reason, c.Message = corev1beta1.ConditionFalse, "Reconciling", fmt.Sprintf("Waiting for shoot %s to be reconciled", shoot.Name)
	}
	return c
}

func seedCondition(status corev1beta1.ConditionStatus, reason, message string) corev1beta1.Condition {
	return corev1beta1.Condition{Type: seedmanagementv1alpha1.ManagedSeedSeedRegistered, Status: status, Reason: reason, Message: message}
}

func registered(name string, seed *corev1beta1.Seed) corev1beta1.Condition {
	if seed == nil {
		return seedCondition(corev1beta1.ConditionProgressing, "EventReconciling",
			fmt.Sprintf("The gardenlet has been deployed. It has not registered Seed %s yet", name))
	}
	return seedCondition(corev1beta1.ConditionTrue, "EventReconciled", fmt.Sprintf("Seed %s has been registered", name))
}

func failed(err error) corev1beta1.Condition {
	return seedCondition(corev1beta1.ConditionFalse, "ReconcileError", err.Error())
}

func deleting(message string) corev1beta1.Condition {
	return seedCondition(corev1beta1.ConditionFalse, "Deleting", message)
}

func deleteFailed(err error) corev1beta1.Condition {
	return seedCondition(corev1beta1.ConditionFalse, "DeleteError", err.Error())
}

// report writes what differs in the status. The generation is observed when the shoot is reconciled and the seed registered. It works after the end of
// the pass too.
func (r *reconciler) report(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, conditions ...corev1beta1.Condition) error {
	after, differs, done := object.DeepCopy(), false, len(conditions) > 1
	for _, condition := range conditions {
		var changed bool
		after.Status.Conditions, changed = kube.SetCondition(after.Status.Conditions, condition, r.Clock.Now())
		differs = differs || changed
		done = done && condition.Status == corev1beta1.ConditionTrue
	}
	if done && after.Status.ObservedGeneration != object.Generation {
		after.Status.ObservedGeneration, differs = object.Generation, true
	}
	if !differs {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	// A list cannot be merged.
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := r.gardenCache.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of ManagedSeed %q: %w", object.Name, err)
	}
	return nil
}
