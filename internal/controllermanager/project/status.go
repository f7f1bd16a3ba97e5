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

// report writes the phase of a Project, if it differs. What other controllers write to the status stays.
func (r *reconciler) report(ctx context.Context, project *corev1beta1.Project, phase corev1beta1.ProjectPhase) error {
	before := project.DeepCopy()
	project.Status.Phase = phase
	if phase != corev1beta1.ProjectPending {
		project.Status.ObservedGeneration = project.Generation
	}
	if before.Status.Phase == project.Status.Phase && before.Status.ObservedGeneration == project.Status.ObservedGeneration {
		return nil
	}
	// It gets a little time of its own, so that what was done is also told when the process ends or the pass took all its time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	// A Project that is gone needs no phase.
	if err := client.IgnoreNotFound(r.client.Status().Patch(ctx, project, client.MergeFrom(before))); err != nil {
		return fmt.Errorf("write phase of Project: %w", err)
	}
	return nil
}
