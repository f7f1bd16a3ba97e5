package maintenance

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/cloudprofile"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct {
	gardenCache client.Client
	recorder    events.EventRecorder
	clock       clock.PassiveClock
	// started is when the process started.
	started time.Time
	// tasks are those for the reconciliation after a maintenance.
	tasks []string
}

// Reconcile maintains a Shoot when a user has requested it or it is due, and requeues it for the next time window.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	now := r.clock.Now()
	at, err := due(shoot, r.started, now)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only a change of the spec helps
	}
	if !requested(shoot) && (at.IsZero() || at.After(now)) {
		return again(at, now), nil
	}
	if err := r.maintain(ctx, shoot, now); err != nil {
		return kube.Result(err)
	}
	if at, err = due(shoot, r.started, now); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	return again(at, now), nil
}

// again requeues at a time, or not at all if it is zero.
func again(at, now time.Time) reconcile.Result {
	if at.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: at.Sub(now)}
}

// maintain changes a Shoot in one request, so that all changes are rolled out together, and writes the outcome to its status. If only the
// latter fails, the maintenance is repeated, which changes no versions.
func (r *reconciler) maintain(ctx context.Context, shoot *corev1beta1.Shoot, now time.Time) error {
	profile, err := cloudprofile.Spec(ctx, r.gardenCache, shoot)
	if err != nil {
		// The error is about the profile, not the Shoot, so a conflict or not found is no reason to requeue soon.
		return fmt.Errorf("maintain: %v", err) //nolint:errorlint // see above
	}
	out := decide(shoot, profile, r.tasks, now)
	err = r.change(ctx, shoot, out.shoot)
	if rejected(err) && len(out.changes) > 0 {
		// Nothing was changed. Changes that do not depend on versions are made nevertheless.
		without := decide(shoot, nil, r.tasks, now)
		without.failures = slices.Concat(out.failures, []string{fmt.Sprintf("Update of %s is rejected: %s", out.updates(), err)})
		out = without
		err = r.change(ctx, shoot, out.shoot)
	}
	if rejected(err) {
		out = outcome{shoot: shoot.DeepCopy(), plan: plan{failures: append(out.failures, "The reconciliation is rejected: "+err.Error())}}
	} else if err != nil {
		return fmt.Errorf("maintain: %w", err)
	}
	last := out.lastMaintenance(now)
	logf.FromContext(ctx).Info("Maintained", "description", last.Description, "failureReason", last.FailureReason)
	for _, c := range out.changes {
		r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, c.reason, constants.EventActionReconcile, "Updated %s", c.text)
	}
	if last.FailureReason != nil {
		r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, constants.EventShootMaintenanceFailed, constants.EventActionReconcile, "%s", *last.FailureReason)
	}
	if err := r.report(ctx, out.shoot, last); err != nil {
		return err
	}
	shoot.Status.LastMaintenance = last
	return nil
}

// change patches a Shoot to the desired one, which is updated with the response. Worker pools are a list, which cannot be merged, so the
// result is a conflict if the Shoot has changed since it was read.
func (r *reconciler) change(ctx context.Context, shoot, desired *corev1beta1.Shoot) error {
	return r.gardenCache.Patch(ctx, desired, client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{}))
}

// rejected reports whether the API server rejected a change, which a retry would not fix.
func rejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
