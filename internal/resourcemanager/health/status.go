package health

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// report writes the conditions if they differ. The managedresource controller resets them when the manifests change, so a write that is
// based on the state before gets a conflict.
func (r *reconciler) report(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, conditions []corev1beta1.Condition) error {
	before, changed := mr.DeepCopy(), false
	for _, condition := range conditions {
		var differs bool
		mr.Status.Conditions, differs = kube.SetCondition(mr.Status.Conditions, condition, r.clock.Now())
		changed = changed || differs
	}
	if !changed {
		return nil
	}
	return client.IgnoreNotFound(r.source.Status().Patch(ctx, mr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}
