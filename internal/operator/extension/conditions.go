package extension

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// statusTimeout is the end of a write of the status, which may happen after the end of a pass.
const statusTimeout = 5 * time.Second

// Status is what a controller writes to the status of an Extension. Each condition has one controller that writes it.
type Status struct {
	// Conditions are set.
	Conditions []corev1beta1.Condition
	// Without are the types of conditions that are removed.
	Without []corev1beta1.ConditionType
	// ObservedGeneration is set if it is not zero.
	ObservedGeneration int64
}

// Write writes what differs in the status of an Extension, which is changed accordingly. Other controllers write other conditions of the same
// list, which merge patches replace as a whole: the error is a conflict if the Extension has changed since it was read. A missing Extension is
// not an error.
func Write(ctx context.Context, c client.Client, e *operatorv1alpha1.Extension, now time.Time, status Status) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	after, differs := e.DeepCopy(), false
	for _, condition := range status.Conditions {
		var changed bool
		after.Status.Conditions, changed = kube.SetCondition(after.Status.Conditions, condition, now)
		differs = differs || changed
	}
	before := len(after.Status.Conditions)
	after.Status.Conditions = slices.DeleteFunc(slices.Clone(after.Status.Conditions), func(c corev1beta1.Condition) bool {
		return slices.Contains(status.Without, c.Type)
	})
	differs = differs || len(after.Status.Conditions) != before
	if g := status.ObservedGeneration; g != 0 && g != after.Status.ObservedGeneration {
		after.Status.ObservedGeneration, differs = g, true
	}
	if !differs {
		return nil
	}
	patch := client.MergeFromWithOptions(e.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status of Extension %q: %w", e.Name, err)
	} else if err == nil {
		after.DeepCopyInto(e)
	}
	return nil
}

// Is reports whether a condition of an Extension has a status.
func Is(e *operatorv1alpha1.Extension, typ corev1beta1.ConditionType, status corev1beta1.ConditionStatus) bool {
	condition := kube.Condition(e.Status.Conditions, typ)
	return condition != nil && condition.Status == status
}
