package hibernation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct {
	gardenClient client.Client
	recorder     events.EventRecorder
	clock        clock.Clock
	// deadline is how late an appointment may be kept.
	deadline time.Duration
}

// Reconcile keeps the last appointment of a Shoot, and comes back for the next one.
func (r *reconciler) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil || failed(shoot) || !scheduled(shoot) {
		return reconcile.Result{}, nil
	}
	log := logf.FromContext(ctx)
	now := r.clock.Now()
	v, err := decide(shoot, now, r.deadline)
	if err != nil { // the other schedules count nevertheless, and only an edit helps
		log.Error(err, "Reading schedules")
	}
	again := reconcile.Result{}
	if !v.next.IsZero() {
		again.RequeueAfter = v.next.Sub(now)
	}
	if !v.due {
		return again, nil
	}
	before := shoot.DeepCopy()
	if enabled := shoot.Spec.Hibernation.Enabled; enabled == nil || *enabled != v.sleep {
		shoot.Spec.Hibernation.Enabled = &v.sleep
		log.Info("Changing hibernation on schedule", "enabled", v.sleep)
		if err := r.gardenClient.Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
			return kube.Result(fmt.Errorf("change hibernation: %w", err))
		}
		reason, note := constants.EventShootHibernationEnabled, "Hibernating cluster due to schedule"
		if !v.sleep {
			reason, note = constants.EventShootHibernationDisabled, "Waking up cluster due to schedule"
		}
		r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, reason, constants.EventActionReconcile, note)
	}
	// What is not recorded is done once more, which changes nothing.
	before = shoot.DeepCopy()
	shoot.Status.LastHibernationTriggerTime = &metav1.Time{Time: now}
	if err := r.gardenClient.Status().Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
		return kube.Result(fmt.Errorf("record hibernation: %w", err))
	}
	return again, nil
}
