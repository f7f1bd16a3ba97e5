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
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
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

func (r *reconciler) markSeed(ctx context.Context, seed *corev1beta1.Seed, now time.Time) error {
	// The gardenlet may have reported it as Unknown itself; then its reason and message say more.
	if ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady); ready != nil && ready.Status == corev1beta1.ConditionUnknown {
		return nil
	}
	before := seed.DeepCopy()
	seed.Status.Conditions, _ = kube.SetCondition(seed.Status.Conditions, corev1beta1.Condition{
		Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionUnknown, Reason: reasonSeedUnknown, Message: messageSeedUnknown,
	}, now)
	logf.FromContext(ctx).Info("Turning GardenletReady to Unknown because the Lease is not renewed")
	if err := r.gardenCache.Status().Patch(ctx, seed, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write condition of Seed %q: %w", seed.Name, err)
	}
	return nil
}

// markShoots turns the conditions and constraints of the Shoots of a Seed to Unknown. A Shoot that is migrated belongs to the old Seed until
// status.seedName changes.
func (r *reconciler) markShoots(ctx context.Context, seed *corev1beta1.Seed, now time.Time) error {
	shoots := &corev1beta1.ShootList{}
	if err := r.gardenCache.List(ctx, shoots, references.To(references.RefOf(references.Seed, seed)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Shoots: %w", err)
	}
	var errs []error
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		if now := shoot.Status.SeedName; now != nil && *now != seed.Name {
			continue
		}
		conditions, changed := unknown(shoot.Status.Conditions, now)
		constraints, changedToo := unknown(shoot.Status.Constraints, now)
		if !changed && !changedToo {
			continue
		}
		after := shoot.DeepCopy()
		after.Status.Conditions, after.Status.Constraints = conditions, constraints
		logf.FromContext(ctx).V(1).Info("Turning conditions of shoot to Unknown", "shoot", client.ObjectKeyFromObject(shoot))
		// The gardenlet may have reported the conditions since the Shoot was read.
		patch := client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{})
		if err := r.gardenCache.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("write conditions of Shoot %q: %w", client.ObjectKeyFromObject(shoot), err))
		}
	}
	return errors.Join(errs...)
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
