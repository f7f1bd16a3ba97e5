package migration

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct {
	Values
	gardenCache client.Client
}

// Reconcile writes or removes the constraint of a Shoot.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !moves(shoot) {
		return kube.Result(r.report(ctx, shoot, nil))
	}
	source, err := r.seed(ctx, shoot.Status.SeedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	destination, err := r.seed(ctx, shoot.Spec.SeedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	return kube.Result(r.report(ctx, shoot, new(decide(source, destination))))
}

// seed returns a Seed, or nil if it does not exist. Its creation is an event.
func (r *reconciler) seed(ctx context.Context, name *string) (*corev1beta1.Seed, error) {
	seed := &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: ptr.Deref(name, "")}, seed, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Seed: %w", err)
	}
	return seed, nil
}
