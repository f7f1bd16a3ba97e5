package shootnodelocaldnsenabledbydefault_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/shootnodelocaldnsenabledbydefault"
)

func TestAdmit(t *testing.T) {
	off := &corev1beta1.SystemComponents{NodeLocalDNS: &corev1beta1.NodeLocalDNS{}}
	for name, tc := range map[string]struct {
		workers    int
		have, want *corev1beta1.SystemComponents
	}{
		"nothing said":    {workers: 1, want: &corev1beta1.SystemComponents{NodeLocalDNS: &corev1beta1.NodeLocalDNS{Enabled: true}}},
		"switched off":    {workers: 1, have: off, want: off},
		"without workers": {},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Provider.Workers = make([]corev1beta1.Worker, tc.workers)
			shoot.Spec.SystemComponents = tc.have.DeepCopy()
			if err := shootnodelocaldnsenabledbydefault.New().Admit(t.Context(), admissiontest.Request{Resource: "shoots", Object: shoot}.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shoot.Spec.SystemComponents); diff != "" {
				t.Errorf("systemComponents (-want +got):\n%s", diff)
			}
		})
	}
}
