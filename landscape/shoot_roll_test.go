package landscape

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestRollOperation(t *testing.T) {
	for name, tc := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  string
	}{
		"healthy":                      {shootIn("Succeeded", nil), "reconcile"},
		"under way with the old image": {shootIn("Processing", nil), "reconcile"},
		"tried again anyway":           {shootIn("Error", nil), "reconcile"},
		"failed for good":              {shootIn("Failed", nil), "retry"},
		"not begun":                    {&corev1beta1.Shoot{}, ""},
		"an operation is pending":      {shootIn("Succeeded", operation("rotate-ca-start")), ""},
		"failed, and a retry pending":  {shootIn("Failed", operation("retry")), ""},
		"being deleted": {shootIn("Failed", func(shoot *corev1beta1.Shoot) {
			shoot.DeletionTimestamp = &metav1.Time{}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rollOperation(tc.shoot); got != tc.want {
				t.Errorf("rollOperation() = %q, want %q", got, tc.want)
			}
		})
	}
}
