package controlplanenamespace

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// A seed may enforce a pod security level by default. What extensions run in control planes may need privileges.
func TestPodSecurity(t *testing.T) {
	object := Object(Values{Name: "shoot--dev--a", Shoot: &corev1beta1.Shoot{}, Seed: &corev1beta1.Seed{}})
	if level := object.GetLabels()["pod-security.kubernetes.io/enforce"]; level != "privileged" {
		t.Errorf("the namespace enforces the level %q", level)
	}
}
