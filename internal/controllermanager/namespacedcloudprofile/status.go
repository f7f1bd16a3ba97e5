package namespacedcloudprofile

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// report writes the merged profile to the status, if it differs.
func (r *reconciler) report(ctx context.Context, profile *corev1beta1.NamespacedCloudProfile, merged *corev1beta1.CloudProfileSpec) error {
	before := profile.DeepCopy()
	// A webhook of the provider's extension merges the profile's provider configuration into the parent's when the status is written.
	// Its result cannot be compared, so the status is written whenever something changed, and at a restart. The API server stores nothing if
	// the result is the same.
	mergedByExtension := profile.Spec.ProviderConfig != nil
	profile.Status = corev1beta1.NamespacedCloudProfileStatus{CloudProfileSpec: merged, ObservedGeneration: profile.Generation}
	if apiequality.Semantic.DeepEqual(before.Status, profile.Status) && !mergedByExtension {
		return nil
	}
	// The patch removes fields that it compares with the status as read, so that must be the latest.
	return r.gardenCache.Status().Patch(ctx, profile, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
