package dependencywatchdog

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestProbed(t *testing.T) {
	shoot := func(change func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{}
		s.Spec.Provider.Workers = []corev1beta1.Worker{{}}
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Reconcile", State: "Processing"}
		change(s)
		return s
	}
	last := func(operation, state string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			s.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationType(operation), State: corev1beta1.LastOperationState(state)}
		}
	}
	for name, tc := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  bool
	}{
		"reconciled":       {shoot(func(*corev1beta1.Shoot) {}), true},
		"created":          {shoot(last("Create", "Succeeded")), true},
		"restored":         {shoot(last("Restore", "Succeeded")), true},
		"being created":    {shoot(last("Create", "Processing")), false},
		"being restored":   {shoot(last("Restore", "Error")), false},
		"being moved":      {shoot(last("Migrate", "Succeeded")), false},
		"new":              {shoot(func(s *corev1beta1.Shoot) { s.Status.LastOperation = nil }), false},
		"without nodes":    {shoot(func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = nil }), false},
		"in deletion":      {shoot(func(s *corev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), false},
		"to be hibernated": {shoot(func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)} }), false},
		"hibernated":       {shoot(func(s *corev1beta1.Shoot) { s.Status.Hibernated = true }), false},
		"unknown":          {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Probed(tc.shoot); got != tc.want {
				t.Errorf("Probed() is %t", got)
			}
		})
	}
}
