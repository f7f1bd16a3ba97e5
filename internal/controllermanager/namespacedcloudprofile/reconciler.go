package namespacedcloudprofile

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct {
	gardenCache client.Client
	guard       guard.Guard
}

// Reconcile guards a profile and merges it with its parent.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	profile := &corev1beta1.NamespacedCloudProfile{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, profile); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.guard.Keep(ctx, profile); err != nil {
		return kube.Result(fmt.Errorf("keep %s: %w", req, err))
	}
	if !controllerutil.ContainsFinalizer(profile, constants.FinalizerGardenerName) {
		return reconcile.Result{}, nil // it was added or removed just now, which causes an event
	}
	parent := &corev1beta1.CloudProfile{}
	switch err := r.gardenCache.Get(ctx, types.NamespacedName{Name: profile.Spec.Parent.Name}, parent); {
	case apierrors.IsNotFound(err):
		// If it is created, that is an event.
		log.FromContext(ctx).Info("Waiting for the parent CloudProfile", "cloudProfile", profile.Spec.Parent.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if err := r.report(ctx, profile, merge(&parent.Spec, &profile.Spec)); err != nil {
		return kube.Result(fmt.Errorf("write merged profile: %w", err))
	}
	return reconcile.Result{}, nil
}

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
