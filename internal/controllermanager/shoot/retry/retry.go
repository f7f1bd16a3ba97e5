// Package retry tries Shoots again that failed for a reason which passes by itself: the infrastructure limits how many requests it
// takes.
//
// It reads the status of Shoots, and writes the annotation that asks for an operation. Source: concepts.txt, Shoot controller,
// "Retry" reconciler.
package retry

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// Add adds the controller to a manager.
func Add(mgr manager.Manager, config *controllermanagerconfigv1alpha1.ShootRetryControllerConfiguration, clk clock.Clock) error {
	r := &reconciler{gardenClient: mgr.GetClient(), clock: clk, period: config.RetryPeriod.Duration, jitter: config.RetryJitterPeriod.Duration}
	return builder.ControllerManagedBy(mgr).Named("shoot-retry").WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(predicate.Funcs{
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		}, predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return retryable(obj.(*corev1beta1.Shoot)) //nolint:forcetypeassert // the kind that is watched
		}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

type reconciler struct {
	gardenClient   client.Client
	clock          clock.Clock
	period, jitter time.Duration
}

// Reconcile asks for a retry when its time has come.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !retryable(shoot) {
		return reconcile.Result{}, nil
	}
	if wait := due(shoot, r.period, r.jitter).Sub(r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	logf.FromContext(ctx).Info("Retrying failed operation", "type", shoot.Status.LastOperation.Type)
	err := kube.PatchMetadata(ctx, r.gardenClient, shoot, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, constants.ShootOperationRetry)
	})
	if err != nil {
		return kube.Result(fmt.Errorf("ask for a retry: %w", err))
	}
	return reconcile.Result{}, nil
}

// retryable tells whether the last operation of a Shoot failed for good, for a reason that passes, and nobody has asked for
// something else since.
func retryable(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateFailed && shoot.Generation == shoot.Status.ObservedGeneration &&
		shoot.Annotations[constants.GardenerOperation] == "" &&
		slices.ContainsFunc(shoot.Status.LastErrors, func(e corev1beta1.LastError) bool {
			return slices.Contains(e.Codes, corev1beta1.ErrorInfraRateLimitsExceeded)
		})
}

// due returns when a failed operation is to be tried again. The jitter follows from the Shoot and the failure, so that it is the same
// at every look, but another one for every Shoot.
func due(shoot *corev1beta1.Shoot, period, jitter time.Duration) time.Time {
	failed := shoot.Status.LastOperation.LastUpdateTime.Time
	hash := fnv.New64a()
	fmt.Fprint(hash, shoot.UID, failed.Unix())
	return failed.Add(period + time.Duration(hash.Sum64()%uint64(jitter+1)))
}
