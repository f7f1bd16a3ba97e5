package required

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
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
	for kindAndType, want := range map[[2]string]bool{
		{"Worker", "local"}: true, {"Network", "flannel"}: true, {"Worker", "flannel"}: false, {"DNSRecord", "local"}: false,
	} {
		if got := responsible(registration, kindAndType[0], kindAndType[1]); got != want {
			t.Errorf("responsible(%v) is %t", kindAndType, got)
		}
	}
}
