package shootdnsrewriting_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/shootdnsrewriting"
)

func TestAdmit(t *testing.T) {
	with := func(suffixes ...string) *corev1beta1.SystemComponents {
		return &corev1beta1.SystemComponents{CoreDNS: &corev1beta1.CoreDNS{Rewriting: &corev1beta1.CoreDNSRewriting{CommonSuffixes: suffixes}}}
	}
	for name, tc := range map[string]struct {
		workers    int
		suffixes   []string
		have, want *corev1beta1.SystemComponents
	}{
		"nothing said":    {workers: 1, suffixes: []string{"a.example.com"}, want: with("a.example.com")},
		"some of its own": {workers: 1, suffixes: []string{"a.example.com", "b.example.com"}, have: with("b.example.com"), want: with("b.example.com", "a.example.com")},
		"none configured": {workers: 1},
		"without workers": {suffixes: []string{"a.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Provider.Workers = make([]corev1beta1.Worker, tc.workers)
			shoot.Spec.SystemComponents = tc.have.DeepCopy()
			if err := shootdnsrewriting.New(tc.suffixes).Admit(t.Context(), admissiontest.Request{Resource: "shoots", Object: shoot}.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shoot.Spec.SystemComponents); diff != "" {
				t.Errorf("systemComponents (-want +got):\n%s", diff)
			}
		})
	}
}
