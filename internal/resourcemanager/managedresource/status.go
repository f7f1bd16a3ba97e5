package managedresource

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// verdict is the result of a reconciliation.
type verdict struct {
	// err is the error, and reason that of the condition.
	err    error
	reason string
	// resources are the objects that exist or may exist.
	resources []resourcesv1alpha1.ObjectReference
	// pending are those that are being deleted.
	pending []resourcesv1alpha1.ObjectReference
	// checksum is that of the applied Secrets, empty if not all objects were applied.
	checksum string
	// ignored says that the ManagedResource has the annotation to be ignored.
	ignored bool
}

// begin writes into the status which objects there will be, before any of them is written. If the manifests have changed, it resets the
// conditions of the health controller.
func (r *reconciler) begin(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, resources []resourcesv1alpha1.ObjectReference, checksum string) error {
	attempt := fmt.Sprintf("%d %s", mr.Generation, checksum)
	last, _ := r.attempts.Swap(mr.UID, attempt)
	changed := attempt != last &&
		(mr.Status.ObservedGeneration != mr.Generation || mr.Status.SecretsDataChecksum == nil || *mr.Status.SecretsDataChecksum != checksum)
	return r.write(ctx, mr, func(status *resourcesv1alpha1.ManagedResourceStatus) {
		status.Resources = resources
		if !changed {
			return
		}
		r.set(status, resourcesv1alpha1.ResourcesApplied, corev1beta1.ConditionProgressing,
			resourcesv1alpha1.ConditionApplyProgressing, "The resources are currently being applied.")
		r.set(status, resourcesv1alpha1.ResourcesHealthy, corev1beta1.ConditionUnknown,
			resourcesv1alpha1.ConditionChecksPending, "The health checks have not been executed for the current set of resources.")
		r.set(status, resourcesv1alpha1.ResourcesProgressing, corev1beta1.ConditionUnknown,
			resourcesv1alpha1.ConditionChecksPending, "The progressing checks have not been executed for the current set of resources.")
	})
}

// report writes the result of a reconciliation.
func (r *reconciler) report(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, v verdict) error {
	return r.write(ctx, mr, func(status *resourcesv1alpha1.ManagedResourceStatus) {
		if v.ignored {
			const message = "The ManagedResource is marked to be ignored."
			status.ObservedGeneration = mr.Generation
			r.set(status, resourcesv1alpha1.ResourcesApplied, corev1beta1.ConditionTrue, resourcesv1alpha1.ConditionManagedResourceIgnored, message)
			r.set(status, resourcesv1alpha1.ResourcesHealthy, corev1beta1.ConditionTrue, resourcesv1alpha1.ConditionManagedResourceIgnored, message)
			r.set(status, resourcesv1alpha1.ResourcesProgressing, corev1beta1.ConditionFalse, resourcesv1alpha1.ConditionManagedResourceIgnored, message)
			return
		}
		if v.resources != nil || v.err == nil {
			status.Resources = v.resources
		}
		switch {
		case v.err != nil:
			r.set(status, resourcesv1alpha1.ResourcesApplied, corev1beta1.ConditionFalse, v.reason, v.err.Error())
		case len(v.pending) > 0:
			first := describe(refKey(v.pending[0]))
			r.set(status, resourcesv1alpha1.ResourcesApplied, corev1beta1.ConditionProgressing, resourcesv1alpha1.ConditionDeletionPending,
				fmt.Sprintf("%d resources are being deleted, the first is %s.", len(v.pending), first))
		default:
			r.set(status, resourcesv1alpha1.ResourcesApplied, corev1beta1.ConditionTrue, resourcesv1alpha1.ConditionApplySucceeded, "All resources are applied.")
		}
		if v.checksum != "" {
			status.SecretsDataChecksum, status.ObservedGeneration = &v.checksum, mr.Generation
		}
	})
}

func (r *reconciler) set(status *resourcesv1alpha1.ManagedResourceStatus, typ corev1beta1.ConditionType, value corev1beta1.ConditionStatus, reason, message string) {
	status.Conditions, _ = kube.SetCondition(status.Conditions, corev1beta1.Condition{Type: typ, Status: value, Reason: reason, Message: message}, r.clock.Now())
}

// write writes a changed status, also if the reconciliation has timed out. The health controller writes conditions, too, and a list cannot
// be merged, so the error may be a conflict.
func (r *reconciler) write(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, change func(*resourcesv1alpha1.ManagedResourceStatus)) error {
	before := mr.DeepCopy()
	change(&mr.Status)
	if apiequality.Semantic.DeepEqual(before.Status, mr.Status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	return client.IgnoreNotFound(r.source.Status().Patch(ctx, mr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}
