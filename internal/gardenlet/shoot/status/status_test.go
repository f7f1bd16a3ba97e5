package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

func pending(auto, manual []string) *corev1beta1.InPlaceUpdatesStatus {
	return &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &corev1beta1.PendingWorkerUpdates{AutoInPlaceUpdate: auto, ManualInPlaceUpdate: manual}}
}

func TestRemaining(t *testing.T) {
	for name, tc := range map[string]struct {
		before, left, want *corev1beta1.InPlaceUpdatesStatus
	}{
		"all are updated":     {before: pending([]string{"a"}, []string{"m"}), left: nil, want: nil},
		"one is updated":      {before: pending([]string{"a"}, []string{"m", "n"}), left: pending(nil, []string{"n"}), want: pending(nil, []string{"n"})},
		"none is added":       {before: pending(nil, []string{"m"}), left: pending([]string{"a"}, []string{"m"}), want: pending(nil, []string{"m"})},
		"another one differs": {before: pending(nil, []string{"m"}), left: pending([]string{"a"}, nil), want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, remaining(tc.before, tc.left)); diff != "" {
				t.Errorf("remaining() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOperation(t *testing.T) {
	const force = constants.ShootOperationForceInPlaceUpdate
	for name, tc := range map[string]struct {
		annotation    string
		phase         corev1beta1.CredentialsRotationPhase
		before, after *corev1beta1.InPlaceUpdatesStatus
		want          string
	}{
		"nothing waits":                       {before: pending(nil, []string{"m"})},
		"a rotation waits":                    {phase: corev1beta1.RotationPreparing, before: pending(nil, []string{"m"}), want: "reconcile"},
		"a rotation waits for a rollout":      {phase: corev1beta1.RotationWaitingForWorkersRollout, before: pending(nil, []string{"m"}), want: "reconcile"},
		"a rotation is prepared":              {phase: corev1beta1.RotationPrepared, before: pending(nil, []string{"m"})},
		"it waits for another pool":           {phase: corev1beta1.RotationPreparing, before: pending(nil, []string{"m", "n"}), after: pending(nil, []string{"n"})},
		"the operation of automatic updates":  {phase: corev1beta1.RotationPreparing, before: pending([]string{"a"}, nil)},
		"nothing is pending that is forced":   {annotation: force, before: pending([]string{"a"}, nil)},
		"something is pending that is forced": {annotation: force, before: pending([]string{"a", "b"}, nil), after: pending([]string{"b"}, nil), want: force},
		"forced, and a rotation waits":        {annotation: force, phase: corev1beta1.RotationPreparing, before: pending(nil, []string{"m"}), want: "reconcile"},
		"another operation stays":             {annotation: "retry", phase: corev1beta1.RotationPreparing, before: pending(nil, []string{"m"}), want: "retry"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Annotations = map[string]string{constants.GardenerOperation: tc.annotation}
			shoot.Status.InPlaceUpdates = tc.before
			if tc.phase != "" {
				shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
					ServiceAccountKey: &corev1beta1.ServiceAccountKeyRotation{Phase: tc.phase},
				}}
			}
			if got := operation(shoot, tc.after); got != tc.want {
				t.Errorf("operation() = %q, want %q", got, tc.want)
			}
		})
	}
}
