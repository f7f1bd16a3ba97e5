package rotation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

var (
	before = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	now    = metav1.Time{Time: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
)

func TestRotation(t *testing.T) {
	pool := corev1beta1.Worker{Name: "a"}
	pending := []corev1beta1.PendingWorkersRollout{{Name: "a", LastInitiationTime: before}}
	start := func(p Phased) { p.Start(now, corev1beta1.RotationPreparing) }
	complete := func(p Phased) { p.Complete(now) }
	advance := func(p Phased) { p.Advance(now) }
	for name, tc := range map[string]struct {
		before corev1beta1.CARotation
		change func(Phased)
		want   corev1beta1.CARotation
	}{
		"the first start": {change: start, want: corev1beta1.CARotation{Phase: "Preparing", LastInitiationTime: &now}},
		"another start": {
			before: corev1beta1.CARotation{
				Phase: "Completed", LastInitiationTime: before, LastInitiationFinishedTime: before, LastCompletionTriggeredTime: before, LastCompletionTime: before,
				PendingWorkersRollouts: pending,
			},
			change: start, want: corev1beta1.CARotation{Phase: "Preparing", LastInitiationTime: &now, LastCompletionTime: before},
		},
		"a start with machines that are replaced later": {
			before: corev1beta1.CARotation{Phase: "Completed", LastInitiationTime: before},
			change: func(p Phased) { p.Start(now, corev1beta1.RotationPreparingWithoutWorkersRollout, pool) },
			want:   corev1beta1.CARotation{Phase: "PreparingWithoutWorkersRollout", LastInitiationTime: &now, PendingWorkersRollouts: pending},
		},
		"a start in progress": {
			before: corev1beta1.CARotation{Phase: "Prepared", LastInitiationTime: before}, change: start,
			want: corev1beta1.CARotation{Phase: "Prepared", LastInitiationTime: before},
		},
		"a completion": {
			before: corev1beta1.CARotation{Phase: "Prepared"}, change: complete,
			want: corev1beta1.CARotation{Phase: "Completing", LastCompletionTriggeredTime: &now},
		},
		"a completion too early": {before: corev1beta1.CARotation{Phase: "Preparing"}, change: complete, want: corev1beta1.CARotation{Phase: "Preparing"}},
		"preparing is done": {
			before: corev1beta1.CARotation{Phase: "Preparing"}, change: advance, want: corev1beta1.CARotation{Phase: "Prepared", LastInitiationFinishedTime: &now},
		},
		"machines are yet to be replaced": {
			before: corev1beta1.CARotation{Phase: "PreparingWithoutWorkersRollout", PendingWorkersRollouts: pending}, change: advance,
			want: corev1beta1.CARotation{Phase: "WaitingForWorkersRollout", PendingWorkersRollouts: pending},
		},
		"all machines are replaced": {
			before: corev1beta1.CARotation{Phase: "WaitingForWorkersRollout"}, change: advance,
			want: corev1beta1.CARotation{Phase: "Prepared", LastInitiationFinishedTime: &now},
		},
		"prepared waits for the user": {before: corev1beta1.CARotation{Phase: "Prepared"}, change: advance, want: corev1beta1.CARotation{Phase: "Prepared"}},
		"completing is done": {
			before: corev1beta1.CARotation{Phase: "Completing", LastInitiationFinishedTime: before, LastCompletionTriggeredTime: before}, change: advance,
			want: corev1beta1.CARotation{Phase: "Completed", LastCompletionTime: &now},
		},
		"a pass after the completion": {
			before: corev1beta1.CARotation{Phase: "Completed", LastCompletionTriggeredTime: before, LastCompletionTime: before}, change: advance,
			want: corev1beta1.CARotation{Phase: "Completed", LastCompletionTime: before},
		},
		"no rotation": {change: advance},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.before
			tc.change(OfCAs(&got))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each function refers to the fields of its own rotation.
func TestKindsOfRotations(t *testing.T) {
	key, encryption := &corev1beta1.ServiceAccountKeyRotation{}, &corev1beta1.ETCDEncryptionKeyRotation{}
	for name, phased := range map[string]Phased{"key": OfServiceAccountKey(key), "encryption": OfEncryptionKey(encryption)} {
		phased.Start(now, corev1beta1.RotationPreparing)
		phased.Advance(now)
		phased.Complete(now)
		if *phased.Phase != corev1beta1.RotationCompleting {
			t.Errorf("%s: phase %q, want Completing", name, *phased.Phase)
		}
	}
	if diff := cmp.Diff(&corev1beta1.ServiceAccountKeyRotation{
		Phase: "Completing", LastInitiationTime: &now, LastInitiationFinishedTime: &now, LastCompletionTriggeredTime: &now,
	}, key); diff != "" {
		t.Errorf("service account key (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&corev1beta1.ETCDEncryptionKeyRotation{
		Phase: "Completing", LastInitiationTime: &now, LastInitiationFinishedTime: &now, LastCompletionTriggeredTime: &now,
	}, encryption); diff != "" {
		t.Errorf("encryption key (-want +got):\n%s", diff)
	}
}
