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

// eventAction is what the scheduler was doing when it recorded an event.
const eventAction = "Schedule"

func (r *Reconciler) reportSuccess(shoot *corev1beta1.Shoot, seed string) {
	r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, constants.EventSchedulingSuccessful, eventAction, "Scheduled to seed %q", seed)
}

// reportFailure says in the status and in an event why a Shoot has no seed, unless the status says so already.
func (r *Reconciler) reportFailure(ctx context.Context, shoot *corev1beta1.Shoot, reason error) error {
	description := fmt.Sprintf("Failed to schedule Shoot: %v", reason)
	if last := shoot.Status.LastOperation; last != nil && last.Description == description && last.State == corev1beta1.LastOperationStatePending {
		return nil
	}
	log.FromContext(ctx).Info("Reporting that no seed was found", "reason", reason.Error())
	patch, err := json.Marshal(map[string]any{
		// Whoever gives it a seed in the meantime has more to say.
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
	err = r.gardenClient.Status().Patch(ctx, reported, client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // the next pass sees what has become of it
	case err != nil:
		return fmt.Errorf("report in the status: %w", err)
	}
	r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, constants.EventSchedulingFailed, eventAction, "%s", description)
	return nil
}
