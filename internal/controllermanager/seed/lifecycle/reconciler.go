package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/index"
	"gardener.cloud/gardener/internal/kube"
)

// askAgain is how long a ManagedSeed has to get its gardenlet new credentials before it is asked again: a reconciliation with a
// start of the gardenlet takes a few minutes.
const askAgain = 10 * time.Minute

type reconciler struct {
	gardenClient client.Client
	// live reads Leases: each is needed when it is about to run out, while it is written every few seconds.
	live    client.Reader
	clock   clock.Clock
	periods periods
}

// Reconcile says what is not known any more if the gardenlet of a Seed is silent.
func (r *reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	lease := &coordinationv1.Lease{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: constants.GardenerSeedLeaseNamespace, Name: seed.Name}, lease); apierrors.IsNotFound(err) {
		lease = nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("read Lease of Seed %q: %w", seed.Name, err)
	}
	now := r.clock.Now()
	v := decide(seed, lease, now, r.periods)
	var errs []error
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
	// Reason and message may be the gardenlet's own if it knew no better; then they say more.
	if ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady); ready != nil && ready.Status == corev1beta1.ConditionUnknown {
		return nil
	}
	before := seed.DeepCopy()
	seed.Status.Conditions, _ = kube.SetCondition(seed.Status.Conditions, corev1beta1.Condition{
		Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionUnknown, Reason: reasonSeedUnknown, Message: messageSeedUnknown,
	}, now)
	logf.FromContext(ctx).Info("Turning GardenletReady to Unknown because the Lease is not renewed")
	if err := r.gardenClient.Status().Patch(ctx, seed, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write condition of Seed %q: %w", seed.Name, err)
	}
	return nil
}

// markShoots turns what the gardenlet said about its shoots to Unknown. A shoot that moves is still the old seed's until its status
// says otherwise.
func (r *reconciler) markShoots(ctx context.Context, seed *corev1beta1.Seed, now time.Time) error {
	shoots := &corev1beta1.ShootList{}
	if err := r.gardenClient.List(ctx, shoots, client.MatchingFields{index.ShootSeeds: seed.Name}, client.UnsafeDisableDeepCopy); err != nil {
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
		// The gardenlet may just be back, and right.
		patch := client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{})
		if err := r.gardenClient.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("write conditions of Shoot %q: %w", client.ObjectKeyFromObject(shoot), err))
		}
	}
	return errors.Join(errs...)
}

// renewCredentials asks the parent gardenlet of a managed seed to start its gardenlet with new credentials.
func (r *reconciler) renewCredentials(ctx context.Context, seed *corev1beta1.Seed, now time.Time) error {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.gardenClient.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.Name}, managedSeed); apierrors.IsNotFound(err) {
		return nil // somebody else runs its gardenlet
	} else if err != nil {
		return fmt.Errorf("read ManagedSeed %q: %w", seed.Name, err)
	}
	if asked, err := time.Parse(time.RFC3339, managedSeed.Annotations[constants.GardenerTimestamp]); err == nil && now.Sub(asked) < askAgain {
		return nil
	}
	before := managedSeed.DeepCopy()
	metav1.SetMetaDataAnnotation(&managedSeed.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
	metav1.SetMetaDataAnnotation(&managedSeed.ObjectMeta, constants.GardenerTimestamp, now.UTC().Format(time.RFC3339))
	logf.FromContext(ctx).Info("Asking for new credentials because the client certificate has expired", "managedSeed", client.ObjectKeyFromObject(managedSeed))
	if err := r.gardenClient.Patch(ctx, managedSeed, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate ManagedSeed %q: %w", managedSeed.Name, err)
	}
	return nil
}
