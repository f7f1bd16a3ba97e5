package seedmutator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/seedmutator"
)

func TestAdmit(t *testing.T) {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{
		Name: "seed", Labels: map[string]string{"mine": "yes", "name.seed.gardener.cloud/other": "true"},
	}}
	if err := seedmutator.New().Admit(t.Context(), admissiontest.Request{Resource: "seeds", Object: seed}.Attributes(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"mine": "yes", "name.seed.gardener.cloud/seed": "true"}, seed.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
