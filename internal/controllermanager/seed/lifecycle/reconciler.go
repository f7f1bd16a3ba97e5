package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// renewAgainAfter is when a ManagedSeed is annotated again if its gardenlet has no new credentials yet: a reconciliation with a start of the
// gardenlet takes a few minutes.
const renewAgainAfter = 10 * time.Minute

type reconciler struct {
	Values
	gardenCache client.Client
	// gardenAPI reads Leases: each is needed when it is about to expire, while it is written every few seconds.
	gardenAPI client.Reader
}

// Reconcile reports the conditions of a Seed and its Shoots as Unknown if the gardenlet does not renew its Lease.
func (r *reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	lease := &coordinationv1.Lease{}
	if err := r.gardenAPI.Get(ctx, client.ObjectKey{Namespace: constants.GardenerSeedLeaseNamespace, Name: seed.Name}, lease); apierrors.IsNotFound(err) {
		lease = nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("read Lease of Seed %q: %w", seed.Name, err)
	}
	now := r.Clock.Now()
	v := decide(seed, lease, now, r.Values)
	var errs []error // these do not depend on each other
	if v.seedUnknown {
		errs = append(errs, r.markSeed(ctx, seed, now))
	}
	if v.certificateExpired {
		errs = append(errs, r.renewCredentials(ctx, seed, now))
	}
	if v.shootsUnknown {
		errs = append(errs, r.markShoots(ctx, seed, now))
	}
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: v.recheckIn}, nil
}

// renewCredentials annotates the ManagedSeed of a Seed, so that the parent gardenlet starts the gardenlet with new credentials.
func (r *reconciler) renewCredentials(ctx context.Context, seed *corev1beta1.Seed, now time.Time) error {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.Name}, managedSeed); apierrors.IsNotFound(err) {
		return nil // the gardenlet was deployed by an operator
	} else if err != nil {
		return fmt.Errorf("read ManagedSeed %q: %w", seed.Name, err)
	}
	if last, err := time.Parse(time.RFC3339, managedSeed.Annotations[constants.GardenerTimestamp]); err == nil && now.Sub(last) < renewAgainAfter {
		return nil
	}
	before := managedSeed.DeepCopy()
	metav1.SetMetaDataAnnotation(&managedSeed.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
	metav1.SetMetaDataAnnotation(&managedSeed.ObjectMeta, constants.GardenerTimestamp, now.UTC().Format(time.RFC3339))
	logf.FromContext(ctx).Info("Requesting new credentials because the client certificate has expired", "managedSeed", client.ObjectKeyFromObject(managedSeed))
	if err := r.gardenCache.Patch(ctx, managedSeed, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate ManagedSeed %q: %w", managedSeed.Name, err)
	}
	return nil
}
