// Package retry retries Shoots whose last operation failed because of a rate limit of the infrastructure, which is a temporary error.
//
// It reads the status of Shoots, and writes the operation annotation. Source: concepts.txt, Shoot controller,
// "Retry" reconciler.
package retry

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/shard"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Shoots are reconciled at the same time.
	ConcurrentSyncs int
	// Period is how long after its failure a Shoot is retried.
	Period time.Duration
	// Jitter is the most that is added to Period, so that many Shoots are not retried at once.
	Jitter time.Duration
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("shoot-retry").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(watch.NoDeletes(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return retryable(obj.(*corev1beta1.Shoot)) //nolint:forcetypeassert // the kind that is watched
		}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{Values: v, gardenCache: mgr.GetClient()}))
}

type reconciler struct {
	Values
	gardenCache client.Client
}

// Reconcile annotates a Shoot with the retry operation when the retry is due.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !retryable(shoot) {
		return reconcile.Result{}, nil
	}
	if wait := due(shoot, r.Period, r.Jitter).Sub(r.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	logf.FromContext(ctx).Info("Retrying failed operation", "type", shoot.Status.LastOperation.Type)
	err := kube.PatchMetadata(ctx, r.gardenCache, shoot, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, constants.ShootOperationRetry)
	})
	if err != nil {
		return kube.Result(fmt.Errorf("annotate Shoot with the retry operation: %w", err))
	}
	return reconcile.Result{}, nil
}

// retryable reports whether the last operation of a Shoot failed because of a rate limit, and no other operation has been requested since.
func retryable(shoot *corev1beta1.Shoot) bool {
	return kube.ShootFailed(shoot) && shoot.Annotations[constants.GardenerOperation] == "" &&
		slices.ContainsFunc(shoot.Status.LastErrors, func(e corev1beta1.LastError) bool {
			return slices.Contains(e.Codes, corev1beta1.ErrorInfraRateLimitsExceeded)
		})
}

// due returns when a failed operation is retried. The jitter follows from the Shoot and the time of its failure, so that it is the same in
// each reconciliation, but differs between Shoots.
func due(shoot *corev1beta1.Shoot, period, jitter time.Duration) time.Time {
	failed := shoot.Status.LastOperation.LastUpdateTime.Time
	return failed.Add(period + shard.Delay(shoot.UID, failed, jitter))
}
