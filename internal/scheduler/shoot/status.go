package shoot

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// eventAction is the action in events.
const eventAction = "Schedule"

func (r *reconciler) reportSuccess(shoot *corev1beta1.Shoot, seed string) {
	r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, constants.EventSchedulingSuccessful, eventAction, "Scheduled to seed %q", seed)
}

// reportFailure writes to the status why a Shoot has no seed, and records an event, unless the status has the same description already.
func (r *reconciler) reportFailure(ctx context.Context, shoot *corev1beta1.Shoot, reason error) error {
	description := fmt.Sprintf("Failed to schedule Shoot: %v", reason)
	if last := shoot.Status.LastOperation; last != nil && last.Description == description && last.State == corev1beta1.LastOperationStatePending {
		return nil
	}
	log.FromContext(ctx).Info("Reporting that no seed was found", "reason", reason.Error())
	patch, err := json.Marshal(map[string]any{
		// If the Shoot has been bound since it was read, the status must not change.
		"metadata": map[string]any{"uid": shoot.UID, "resourceVersion": shoot.ResourceVersion},
		"status": map[string]any{"lastOperation": corev1beta1.LastOperation{
			Type:           corev1beta1.LastOperationTypeCreate,
			State:          corev1beta1.LastOperationStatePending,
			Description:    description,
			LastUpdateTime: metav1.NewTime(r.clock.Now()),
		}},
	})
	if err != nil {
		return err
	}
	reported := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	err = r.gardenCache.Status().Patch(ctx, reported, client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // if the Shoot still exists, its update causes another reconciliation
	case err != nil:
		return fmt.Errorf("write status: %w", err)
	}
	r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, constants.EventSchedulingFailed, eventAction, "%s", description)
	return nil
}
