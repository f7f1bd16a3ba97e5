package hibernation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// eventFailed is the reason of events about triggers that could not be executed.
const eventFailed = "HibernationScheduleFailed"

type reconciler struct {
	Values
	gardenCache client.Client
	recorder    events.EventRecorder
}

// Reconcile executes the last trigger of the schedules of a Shoot, and requeues the Shoot for the next one.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil || kube.ShootFailed(shoot) || !scheduled(shoot) {
		return reconcile.Result{}, nil
	}
	log := logf.FromContext(ctx)
	now := r.Clock.Now()
	v, err := decide(shoot, now, r.TriggerDeadline)
	if err != nil { // valid schedules are executed nevertheless, and only a change of the spec fixes the others
		log.Error(err, "Ignoring invalid schedules")
	}
	again := reconcile.Result{}
	if !v.next.IsZero() {
		again.RequeueAfter = v.next.Sub(now)
	}
	if !v.due {
		return again, nil
	}
	before := shoot.DeepCopy()
	if enabled := shoot.Spec.Hibernation.Enabled; enabled == nil || *enabled != v.hibernate {
		shoot.Spec.Hibernation.Enabled = &v.hibernate
		log.Info("Changing hibernation on schedule", "enabled", v.hibernate)
		reason, note := constants.EventShootHibernationEnabled, "Hibernating cluster due to schedule"
		if !v.hibernate {
			reason, note = constants.EventShootHibernationDisabled, "Waking up cluster due to schedule"
		}
		if err := r.gardenCache.Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
			if !kube.Routine(err) { // it is retried until the deadline of the trigger, which is ignored then
				r.recorder.Eventf(before, nil, corev1.EventTypeWarning, eventFailed, constants.EventActionReconcile, "%s", kube.Shorten(note+" failed: "+err.Error(), kube.MaxNote))
			}
			return kube.Result(fmt.Errorf("change hibernation: %w", err))
		}
		r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, reason, constants.EventActionReconcile, note)
	}
	// If this fails, the trigger is executed once more, which changes nothing.
	if err := r.report(ctx, shoot, now); err != nil {
		return kube.Result(err)
	}
	return again, nil
}
