package cloudprofile_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/cloudprofile"
)

func TestCheckChange(t *testing.T) {
	offer := func(machineTypes ...string) corev1beta1.CloudProfileSpec {
		spec := corev1beta1.CloudProfileSpec{
			Type:       "local",
			Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{{Version: "1.36.1"}}},
		}
		for _, name := range machineTypes {
			spec.MachineTypes = append(spec.MachineTypes, corev1beta1.MachineType{Name: name})
		}
		return spec
	}
	own := func(name string, spec corev1beta1.CloudProfileSpec) *corev1beta1.NamespacedCloudProfile {
		return &corev1beta1.NamespacedCloudProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name},
			Spec:       corev1beta1.NamespacedCloudProfileSpec{Parent: corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "cloud"}},
			Status:     corev1beta1.NamespacedCloudProfileStatus{CloudProfileSpec: &spec},
		}
	}
	garden := admissiontest.Reader(t,
		&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: offer("small")},
		&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: offer("small")},
		own("more", offer("small", "large")), own("less", offer()),
	)
	shoot := func(kind, name string) *corev1beta1.Shoot {
		return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev"}, Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: kind, Name: name}, Kubernetes: corev1beta1.Kubernetes{Version: "1.36.1"},
			Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "pool", Machine: corev1beta1.Machine{Type: "small"}}}},
		}}
	}
	oldName := shoot("", "")
	oldName.Spec.CloudProfile, oldName.Spec.CloudProfileName = nil, new("cloud")
	const root, namespaced = "CloudProfile", "NamespacedCloudProfile"
	for name, tc := range map[string]struct {
		old, shoot *corev1beta1.Shoot
		refused    bool
	}{
		"none before":                          {old: &corev1beta1.Shoot{}, shoot: shoot(root, "cloud")},
		"the same":                             {old: shoot(root, "cloud"), shoot: shoot(root, "cloud")},
		"the same under the old name":          {old: oldName, shoot: shoot("", "cloud")},
		"another CloudProfile":                 {old: shoot(root, "cloud"), shoot: shoot(root, "other"), refused: true},
		"a profile made of it":                 {old: shoot(root, "cloud"), shoot: shoot(namespaced, "more")},
		"back to what it is made of":           {old: shoot(namespaced, "more"), shoot: shoot(root, "cloud")},
		"one made of another":                  {old: shoot(root, "other"), shoot: shoot(namespaced, "more"), refused: true},
		"one that does not offer what is used": {old: shoot(root, "cloud"), shoot: shoot(namespaced, "less"), refused: true},
		"one that is not there":                {old: shoot(root, "cloud"), shoot: shoot(namespaced, "gone"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := cloudprofile.CheckChange(t.Context(), garden, tc.shoot, tc.old)
			if (err != nil) != tc.refused {
				t.Errorf("CheckChange() = %v, want refused: %t", err, tc.refused)
			}
			if reason := admissiontest.Reason(err); err != nil && reason != "?" {
				t.Errorf("the answer would be %s, which is about another object", reason)
			}
		})
	}
}
