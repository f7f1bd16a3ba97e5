package stale

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Reasons of events about Projects.
const (
	// eventStale warns that nothing uses the Project any more.
	eventStale = "ProjectStale"
	// eventAutoDelete warns that there is a date for the deletion of the Project.
	eventAutoDelete = "ProjectAutoDeletionScheduled"
	// eventUsed says that the Project is used again.
	eventUsed = "ProjectUsedAgain"
	// eventDeleted says that the Project is deleted because it was stale for too long.
	eventDeleted = "ProjectAutoDeletion"
)

// report writes the timestamps of a Project, if they differ, and records what that means for its members.
func (r *reconciler) report(ctx context.Context, project *corev1beta1.Project, v verdict) error {
	before := project.DeepCopy()
	status := &project.Status
	status.StaleSinceTimestamp, status.StaleAutoDeleteTimestamp = v.since, v.autoDelete
	if apiequality.Semantic.DeepEqual(before.Status, project.Status) {
		return nil
	}
	if err := r.gardenCache.Status().Patch(ctx, project, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write timestamps of Project: %w", err)
	}
	event := func(kind, reason, format string, args ...any) {
		r.recorder.Eventf(project, nil, kind, reason, constants.EventActionReconcile, format, args...)
	}
	if v.since != nil && before.Status.StaleSinceTimestamp == nil {
		event(corev1.EventTypeWarning, eventStale, "Nothing uses the Project any more. It will be deleted if it stays unused.")
	}
	if v.since == nil && before.Status.StaleSinceTimestamp != nil {
		event(corev1.EventTypeNormal, eventUsed, "The Project is used again, and will not be deleted.")
	}
	if v.autoDelete != nil && !v.autoDelete.Equal(before.Status.StaleAutoDeleteTimestamp) {
		event(corev1.EventTypeWarning, eventAutoDelete, "The Project will be deleted after %s if it stays unused.", v.autoDelete.UTC().Format(time.RFC3339))
	}
	return nil
}
