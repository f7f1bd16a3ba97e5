package hosts

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

// addresses gives each AddressClaim an address. Each pass is about all of them, one at a time, and reads them from the API server, as a cache may not have its
// last write yet.
type addresses struct {
	client client.Client
	reader client.Reader
	clock  clock.PassiveClock
}

// add adds the controller.
func (r *addresses) add(mgr manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "all"}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("addressclaims").Watches(&hostsv1alpha1.AddressPool{}, all).Watches(&hostsv1alpha1.AddressClaim{}, all).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).Complete(r)
}

// Reconcile gives addresses. It writes pools first: a write fails if the pool has changed meanwhile, so that an address has one claim.
func (r *addresses) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	pools, claims := &hostsv1alpha1.AddressPoolList{}, &hostsv1alpha1.AddressClaimList{}
	// Pools first: a claim that they name and that is not in the list was deleted.
	if err := r.reader.List(ctx, pools); err != nil {
		return reconcile.Result{}, fmt.Errorf("list AddressPools: %w", err)
	}
	if err := r.reader.List(ctx, claims); err != nil {
		return reconcile.Result{}, fmt.Errorf("list AddressClaims: %w", err)
	}
	oldPools, oldClaims := pools.DeepCopy(), claims.DeepCopy()
	giveAddresses(pools.Items, claims.Items, r.clock.Now())
	err := r.write(ctx, oldPools.Items, pools.Items, oldClaims.Items, claims.Items)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// write writes what has changed.
func (r *addresses) write(
	ctx context.Context, oldPools, pools []hostsv1alpha1.AddressPool, oldClaims, claims []hostsv1alpha1.AddressClaim,
) error {
	before := map[string]any{}
	for i := range oldPools {
		before[string(oldPools[i].UID)] = oldPools[i].Status
	}
	for i := range oldClaims {
		before[string(oldClaims[i].UID)] = oldClaims[i].Status
	}
	for i := range pools {
		if pool := &pools[i]; !equality.Semantic.DeepEqual(before[string(pool.UID)], pool.Status) {
			if err := r.client.Status().Update(ctx, pool); err != nil {
				return err
			}
		}
	}
	for i := range claims {
		if claim := &claims[i]; !equality.Semantic.DeepEqual(before[string(claim.UID)], claim.Status) {
			if err := r.client.Status().Update(ctx, claim); err != nil {
				return err
			}
		}
	}
	return nil
}
