package project

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// reportTimeout is plenty for a single request.
const reportTimeout = 5 * time.Second

// report writes the phase of a Project, if it differs. It keeps the fields that other controllers write.
func (r *reconciler) report(ctx context.Context, project *corev1beta1.Project, phase corev1beta1.ProjectPhase) error {
	before := project.DeepCopy()
	project.Status.Phase = phase
	if phase != corev1beta1.ProjectPending {
		project.Status.ObservedGeneration = project.Generation
	}
	if before.Status.Phase == project.Status.Phase && before.Status.ObservedGeneration == project.Status.ObservedGeneration {
		return nil
	}
	// The request has a deadline of its own, so that the phase is written also when the process stops or the pass has timed out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	// A Project that has been deleted needs no phase.
	if err := client.IgnoreNotFound(r.gardenCache.Status().Patch(ctx, project, client.MergeFrom(before))); err != nil {
		return fmt.Errorf("write phase of Project: %w", err)
	}
	return nil
}
