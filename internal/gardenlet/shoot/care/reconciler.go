package care

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
	shootobserved "gardener.cloud/gardener/internal/shoot/observed" // "observed" is what this controller has read
	"gardener.cloud/gardener/internal/shoot/technicalid"
)

type reconciler struct {
	Values
	gardenCache, seedCache client.Client
	shoots                 shootClients
}

// shootOf maps an object in the namespace of a control plane to the Shoot.
func (r *reconciler) shootOf(ctx context.Context, object client.Object) []reconcile.Request {
	shoot, err := technicalid.Shoot(ctx, r.gardenCache, object.GetNamespace())
	if err != nil || shoot == nil {
		return nil // the next periodic pass observes the change
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(shoot)}}
}

// Reconcile checks one control plane.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot); err != nil {
		if apierrors.IsNotFound(err) {
			r.shoots.close(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if shoot.Status.TechnicalID == "" || ptr.Deref(shoot.Status.SeedName, "") != r.SeedName {
		r.shoots.close(req.NamespacedName)
		return reconcile.Result{}, nil // its control plane is not in this seed
	}
	if err := r.checkNamespace(ctx, shoot); err != nil {
		r.shoots.close(req.NamespacedName)
		return reconcile.Result{}, err
	}
	o, err := r.observe(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	// None of these needs the others: that the garden cannot be reached must not keep stuck pods alive.
	err = errors.Join(r.writeStatus(ctx, shoot, o), r.deleteStaleControlPlanePods(ctx, shoot.Status.TechnicalID), r.cleanUpShoot(ctx, o))
	if err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: r.Config.SyncPeriod.Duration}, nil
}

// checkNamespace returns an error if the namespace that the status names is that of another control plane. One that does not exist yet, or any more, has
// no credentials.
func (r *reconciler) checkNamespace(ctx context.Context, shoot *corev1beta1.Shoot) error {
	_, err := shootobserved.ReadNamespace(ctx, r.SeedAPI, shoot, shoot.Status.TechnicalID)
	return client.IgnoreNotFound(err)
}
