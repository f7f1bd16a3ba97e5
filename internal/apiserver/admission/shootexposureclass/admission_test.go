package shootexposureclass_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/shootexposureclass"
)

func TestAdmit(t *testing.T) {
	selector := func(value string, providers ...string) *corev1beta1.SeedSelector {
		return &corev1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"exposure": value}}, ProviderTypes: providers}
	}
	class := &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "internet"}, Scheduling: &corev1beta1.ExposureClassScheduling{
		SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}},
	}}
	plain := &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	everywhere := &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}, Scheduling: &corev1beta1.ExposureClassScheduling{
		SeedSelector: &corev1beta1.SeedSelector{ProviderTypes: []string{"*"}},
	}}
	for name, tc := range map[string]struct {
		old        *corev1beta1.ShootSpec
		spec, want corev1beta1.ShootSpec
		reason     metav1.StatusReason
	}{
		"no class":    {},
		"plain class": {spec: corev1beta1.ShootSpec{ExposureClassName: new("plain")}, want: corev1beta1.ShootSpec{ExposureClassName: new("plain")}},
		"class with a selector": {
			spec: corev1beta1.ShootSpec{ExposureClassName: new("internet")},
			want: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}}},
		},
		"class that adds nothing": {
			spec: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}}},
			want: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}}},
		},
		"class against the Shoot": {spec: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("intranet")}, reason: metav1.StatusReasonForbidden},
		"seeds of other providers than the class has": {
			spec: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local", "other")},
			want: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}}},
		},
		"seeds of all providers": {
			spec: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "*")},
			want: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}}},
		},
		"seeds of another provider": {spec: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "other")}, reason: metav1.StatusReasonForbidden},
		"a class for all providers": {
			spec: corev1beta1.ShootSpec{ExposureClassName: new("everywhere"), SeedSelector: selector("a", "other")},
			want: corev1beta1.ShootSpec{ExposureClassName: new("everywhere"), SeedSelector: selector("a", "other")},
		},
		"a class for all providers, and none of the Shoot": {
			spec: corev1beta1.ShootSpec{ExposureClassName: new("everywhere")},
			want: corev1beta1.ShootSpec{ExposureClassName: new("everywhere"), SeedSelector: &corev1beta1.SeedSelector{ProviderTypes: []string{"*"}}},
		},
		"class set by an update": {
			old:  &corev1beta1.ShootSpec{},
			spec: corev1beta1.ShootSpec{ExposureClassName: new("internet")},
			want: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}}},
		},
		"selector removed by an update": {
			old:  &corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}}},
			spec: corev1beta1.ShootSpec{ExposureClassName: new("internet")},
			want: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedSelector: selector("internet", "local"), Tolerations: []corev1beta1.Toleration{{Key: "exposed"}}},
		},
		"another update of a class that does not exist any more": {
			old: &corev1beta1.ShootSpec{ExposureClassName: new("x")}, spec: corev1beta1.ShootSpec{ExposureClassName: new("x"), Region: "a"},
			want: corev1beta1.ShootSpec{ExposureClassName: new("x"), Region: "a"},
		},
		"update with a seed": {
			old: &corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedName: new("a"), SeedSelector: selector("intranet")}, spec: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedName: new("a")},
			want: corev1beta1.ShootSpec{ExposureClassName: new("internet"), SeedName: new("a")},
		},
		"no such class": {spec: corev1beta1.ShootSpec{ExposureClassName: new("x")}, reason: metav1.StatusReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{Spec: tc.spec}
			p := shootexposureclass.New()
			p.GardenCache = admissiontest.Reader(t, class, plain, everywhere)
			request := admissiontest.Request{Resource: "shoots", Object: shoot}
			if tc.old != nil {
				request.Old = &corev1beta1.Shoot{Spec: *tc.old}
			}
			attributes, err := request.Attributes(), error(nil)
			if p.Handles(attributes.GetOperation()) {
				err = p.Admit(t.Context(), attributes, nil)
			}
			if admissiontest.Reason(err) != tc.reason {
				t.Fatalf("Admit() = %v, want reason %q", err, tc.reason)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, shoot.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}
