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
	gardenClient client.Client
	recorder     events.EventRecorder
	clock        clock.Clock
	// started is when the process started.
	started time.Time
	// tasks are what the reconciliation after a maintenance does besides the usual.
	tasks []string
}

// Reconcile maintains a Shoot when somebody asks for it or its time has come, and comes back in the next window.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	now := r.clock.Now()
	at, err := due(shoot, r.started, now)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only an edit helps
	}
	if !asked(shoot) && (at.IsZero() || at.After(now)) {
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

// again comes back at a time, which is never if it is zero.
func again(at, now time.Time) reconcile.Result {
	if at.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: at.Sub(now)}
}

// maintain changes a Shoot in one request, so that all changes are rolled out together, and says in its status what was done. If it ends
// in between, it is done once more, which changes no versions.
func (r *reconciler) maintain(ctx context.Context, shoot *corev1beta1.Shoot, now time.Time) error {
	profile, err := cloudprofile.Spec(ctx, r.gardenClient, shoot)
	if err != nil {
		// Whatever the code of the answer is: it is not about the Shoot, so it is no reason to try again soon.
		return fmt.Errorf("maintain: %v", err) //nolint:errorlint // see above
	}
	out := decide(shoot, profile, r.tasks, now)
	err = r.change(ctx, shoot, out.shoot)
	if refused(err) && len(out.changes) > 0 {
		// That changed nothing. What does not depend on versions is done nevertheless.
		without := decide(shoot, nil, r.tasks, now)
		without.failures = slices.Concat(out.failures, []string{fmt.Sprintf("Update of %s is refused: %s", out.updates(), err)})
		out = without
		err = r.change(ctx, shoot, out.shoot)
	}
	if refused(err) {
		out = outcome{shoot: shoot.DeepCopy(), plan: plan{failures: append(out.failures, "The reconciliation is refused: "+err.Error())}}
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
	before := out.shoot.DeepCopy()
	out.shoot.Status.LastMaintenance = last
	if err := r.gardenClient.Status().Patch(ctx, out.shoot, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("record maintenance: %w", err)
	}
	shoot.Status.LastMaintenance = last
	return nil
}

// change makes a Shoot be as it is wanted, which afterwards is as the API server has it. Pools are a list, which cannot be merged, so a
// Shoot that has changed since it was read is a conflict.
func (r *reconciler) change(ctx context.Context, shoot, wanted *corev1beta1.Shoot) error {
	return r.gardenClient.Patch(ctx, wanted, client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{}))
}

// refused tells whether the API server does not want a change, now or later.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
