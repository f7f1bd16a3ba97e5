package controllerregistrationresources_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/controllerregistrationresources"
)

func registration(name string, resources ...corev1beta1.ControllerResource) *corev1beta1.ControllerRegistration {
	return &corev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ControllerRegistrationSpec{Resources: resources},
	}
}

func TestValidate(t *testing.T) {
	infrastructure := corev1beta1.ControllerResource{Kind: "Infrastructure", Type: "local"}
	helper := corev1beta1.ControllerResource{Kind: "Infrastructure", Type: "local", Primary: new(false)}
	for name, tc := range map[string]struct {
		stored, obj *corev1beta1.ControllerRegistration
		want        metav1.StatusReason
	}{
		"the first one":                  {stored: registration("other"), obj: registration("new", infrastructure)},
		"another type":                   {stored: registration("other", corev1beta1.ControllerResource{Kind: "Infrastructure", Type: "aws"}), obj: registration("new", infrastructure)},
		"itself, again":                  {stored: registration("new", infrastructure), obj: registration("new", infrastructure)},
		"the second one":                 {stored: registration("other", infrastructure), obj: registration("new", infrastructure), want: metav1.StatusReasonForbidden},
		"the second one is not primary":  {stored: registration("other", infrastructure), obj: registration("new", helper)},
		"the first one was not primary":  {stored: registration("other", helper), obj: registration("new", infrastructure)},
		"the second one says that it is": {stored: registration("other", infrastructure), obj: registration("new", corev1beta1.ControllerResource{Kind: "Infrastructure", Type: "local", Primary: new(true)}), want: metav1.StatusReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			p := &controllerregistrationresources.Plugin{}
			p.GardenCache = admissiontest.Reader(t, tc.stored)
			err := p.Validate(t.Context(), admissiontest.Request{Resource: "controllerregistrations", Object: tc.obj}.Attributes(), nil)
			if got := admissiontest.Reason(err); got != tc.want {
				t.Errorf("Validate() is refused as %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}
