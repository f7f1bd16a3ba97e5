package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestDesired(t *testing.T) {
	config := &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: corev1beta1.SeedTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"color": "new"}, Annotations: map[string]string{"note": "new"}},
		Spec:       corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local"}},
	}}
	current := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"color": "old", "other": "kept"}, Finalizers: []string{"f"}},
		Spec:       corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local", Region: "old"}},
		Status:     corev1beta1.SeedStatus{ObservedGeneration: 3},
	}
	want := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{"color": "new", "other": "kept", "gardener.cloud/role": "seed"},
			Annotations: map[string]string{"note": "new"}, Finalizers: []string{"f"},
		},
		Spec:   corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local"}},
		Status: corev1beta1.SeedStatus{ObservedGeneration: 3},
	}
	if diff := cmp.Diff(want, desired(current, config)); diff != "" {
		t.Errorf("desired() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, desired(want, config)); diff != "" {
		t.Errorf("desired() a second time (-want +got):\n%s", diff)
	}
}
