package retry

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

func failedShoot(mutate func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 2},
		Status: corev1beta1.ShootStatus{
			ObservedGeneration: 2,
			LastOperation:      &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed, LastUpdateTime: metav1.Unix(1000, 0)},
			LastErrors:         []corev1beta1.LastError{{Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraDependencies, corev1beta1.ErrorInfraRateLimitsExceeded}}},
		},
	}
	if mutate != nil {
		mutate(shoot)
	}
	return shoot
}

func TestRetryable(t *testing.T) {
	for name, tc := range map[string]struct {
		mutate func(*corev1beta1.Shoot)
		want   bool
	}{
		"failed by a rate limit":   {want: true},
		"retried by the gardenlet": {mutate: func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = corev1beta1.LastOperationStateError }},
		"failed for other reasons": {mutate: func(s *corev1beta1.Shoot) { s.Status.LastErrors[0].Codes = s.Status.LastErrors[0].Codes[:1] }},
		"changed since":            {mutate: func(s *corev1beta1.Shoot) { s.Generation = 3 }},
		"another operation is requested": {mutate: func(s *corev1beta1.Shoot) {
			s.Annotations = map[string]string{constants.GardenerOperation: "reconcile"}
		}},
		"no operation yet": {mutate: func(s *corev1beta1.Shoot) { s.Status = corev1beta1.ShootStatus{} }},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retryable(failedShoot(tc.mutate)); got != tc.want {
				t.Errorf("retryable() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestDue(t *testing.T) {
	const period, jitter = 10 * time.Minute, 5 * time.Minute
	earliest := time.Unix(1000, 0).Add(period)
	seen := map[time.Time]bool{}
	for i := range 100 {
		shoot := failedShoot(func(s *corev1beta1.Shoot) { s.UID = types.UID(fmt.Sprint(i)) })
		at := due(shoot, period, jitter)
		if at.Before(earliest) || at.After(earliest.Add(jitter)) || !at.Equal(due(shoot, period, jitter)) {
			t.Errorf("due() = %s, want it from %s on for %s", at, earliest, jitter)
		}
		seen[at] = true
	}
	if len(seen) < 90 {
		t.Errorf("100 shoots are retried at %d times", len(seen))
	}
	if at := due(failedShoot(nil), period, 0); !at.Equal(earliest) {
		t.Errorf("without jitter it is due at %s", at)
	}
}
