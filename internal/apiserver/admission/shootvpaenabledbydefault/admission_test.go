package shootvpaenabledbydefault_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/shootvpaenabledbydefault"
)

func TestAdmit(t *testing.T) {
	for name, tc := range map[string]struct {
		workers    int
		have, want *corev1beta1.VerticalPodAutoscaler
	}{
		"nothing said":    {workers: 1, want: &corev1beta1.VerticalPodAutoscaler{Enabled: true}},
		"switched off":    {workers: 1, have: &corev1beta1.VerticalPodAutoscaler{}, want: &corev1beta1.VerticalPodAutoscaler{}},
		"without workers": {},
	} {
		if tc.want != nil && tc.have == nil {
			corev1beta1.DefaultVerticalPodAutoscaler(tc.want) // as objects have them when they are read
		}
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Provider.Workers = make([]corev1beta1.Worker, tc.workers)
			shoot.Spec.Kubernetes.VerticalPodAutoscaler = tc.have
			if err := shootvpaenabledbydefault.New().Admit(t.Context(), admissiontest.Request{Resource: "shoots", Object: shoot}.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shoot.Spec.Kubernetes.VerticalPodAutoscaler); diff != "" {
				t.Errorf("verticalPodAutoscaler (-want +got):\n%s", diff)
			}
		})
	}
}
