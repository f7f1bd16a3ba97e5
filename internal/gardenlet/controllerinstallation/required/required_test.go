package required

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestCondition(t *testing.T) {
	if got := condition(nil); got.Status != corev1beta1.ConditionFalse || got.Reason != "NoExtensionObjects" {
		t.Errorf("condition(nil) = %+v", got)
	}
	got := condition([]string{"DNSRecord/local", "Worker/local"})
	if want := "There are resources in the seed that the extension is responsible for: DNSRecord/local, Worker/local"; got.Status != corev1beta1.ConditionTrue || got.Message != want {
		t.Errorf("condition() = %+v", got)
	}
}

func TestResponsible(t *testing.T) {
	registration := &corev1beta1.ControllerRegistration{Spec: corev1beta1.ControllerRegistrationSpec{
		Resources: []corev1beta1.ControllerResource{{Kind: "Worker", Type: "local"}, {Kind: "Network", Type: "flannel"}},
	}}
	type resource struct {
		kind, typ string
		class     extensionsv1alpha1.ExtensionClass
	}
	for r, want := range map[resource]bool{
		{"Worker", "local", ""}: true, {"Network", "flannel", "shoot"}: true, {"Worker", "flannel", ""}: false, {"DNSRecord", "local", ""}: false,
		{"Worker", "local", "seed"}: true, {"Worker", "local", "garden"}: false,
	} {
		spec := &extensionsv1alpha1.DefaultSpec{Type: r.typ}
		if r.class != "" {
			spec.Class = &r.class
		}
		if got := responsible(registration, r.kind, spec); got != want {
			t.Errorf("responsible(%v) is %t", r, got)
		}
	}
}
