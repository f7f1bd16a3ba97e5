package hosts

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

// claims gives each HostClaim a host. It reads HostClaims and Hosts from the API server, as a cache may not have its last write yet.
type claims struct {
	client client.Client
	reader client.Reader
	clock  clock.PassiveClock
}

// add adds the controller. A claim is reconciled when it changes, and when its host does; a claim without one when any host does.
func (r *claims) add(mgr manager.Manager, concurrency int) error {
	return ctrl.NewControllerManagedBy(mgr).Named("hostclaims").For(&hostsv1alpha1.HostClaim{}).
		Watches(&hostsv1alpha1.Host{}, handler.EnqueueRequestsFromMapFunc(r.ofHost)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).Complete(r)
}

func (r *claims) ofHost(ctx context.Context, object client.Object) []reconcile.Request {
	all := &hostsv1alpha1.HostClaimList{}
	if err := r.client.List(ctx, all); err != nil { // from the cache
		logf.FromContext(ctx).Error(err, "Cannot list HostClaims")
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if c := &all.Items[i]; !c.Status.Bound || c.Status.HostName == object.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return requests
}

// Reconcile takes one step. What it has written brings the claim back for the next one.
func (r *claims) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	claim, all := &hostsv1alpha1.HostClaim{}, &hostsv1alpha1.HostList{}
	if err := r.reader.Get(ctx, req.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.reader.List(ctx, all); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Hosts: %w", err)
	}
	action, host := decideClaim(claim, all.Items)
	err := r.act(ctx, action, claim, host, all.Items)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

func (r *claims) act(ctx context.Context, action claimAction, claim *hostsv1alpha1.HostClaim, host *hostsv1alpha1.Host, all []hostsv1alpha1.Host) error {
	log, desired := logf.FromContext(ctx), claim.Status
	switch action {
	case claimWait:
		return nil
	case claimFinish:
		if controllerutil.RemoveFinalizer(claim, hostsv1alpha1.HostFinalizer) {
			return r.client.Update(ctx, claim)
		}
		return nil
	case claimBind:
		log.Info("Claiming host", "host", host.Name)
		setPhase(&host.Status, hostsv1alpha1.HostClaimed, "", r.clock.Now())
		host.Status.Claim = &hostsv1alpha1.Claimant{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		return r.client.Status().Update(ctx, host)
	case claimReserve:
		desired = hostsv1alpha1.HostClaimStatus{HostName: host.Name}
	case claimCancel:
		desired = hostsv1alpha1.HostClaimStatus{}
	case claimBound:
		desired = hostsv1alpha1.HostClaimStatus{HostName: host.Name, Bound: true, Address: host.Spec.Address}
	case claimLost:
		desired.Lost = true
	case claimNone:
		desired.Message = shortage(all, claim)
	}
	if desired == claim.Status {
		return nil
	}
	claim.Status = desired
	return r.client.Status().Update(ctx, claim)
}
