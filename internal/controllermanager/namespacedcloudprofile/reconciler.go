package namespacedcloudprofile

import (
	"context"
	"fmt"

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
