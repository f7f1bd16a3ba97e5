package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestArchitectures(t *testing.T) {
	capabilities := func(architecture string) corev1beta1.Capabilities {
		return corev1beta1.Capabilities{"architecture": {architecture}}
	}
	profile := func(declared bool, version corev1beta1.MachineImageVersion, types ...corev1beta1.MachineType) *corev1beta1.CloudProfile {
		p := &corev1beta1.CloudProfile{Spec: corev1beta1.CloudProfileSpec{
			MachineImages: []corev1beta1.MachineImage{{Versions: []corev1beta1.MachineImageVersion{version}}}, MachineTypes: types,
		}}
		if declared {
			p.Spec.MachineCapabilities = []corev1beta1.CapabilityDefinition{{Name: "architecture", Values: []string{"amd64", "arm64"}}}
		}
		return p
	}
	both := corev1beta1.MachineImageVersion{CapabilityFlavors: []corev1beta1.MachineImageFlavor{
		{Capabilities: capabilities("arm64")}, {Capabilities: capabilities("amd64")}, {Capabilities: capabilities("arm64")},
	}}
	filled := both
	filled.Architectures = []string{"arm64", "amd64"}

	p := profile(true, both,
		corev1beta1.MachineType{Capabilities: capabilities("arm64")}, corev1beta1.MachineType{Architecture: new("arm64")}, corev1beta1.MachineType{})
	arm := corev1beta1.MachineType{Architecture: new("arm64"), Capabilities: capabilities("arm64")}
	amd := corev1beta1.MachineType{Architecture: new("amd64"), Capabilities: capabilities("amd64")}
	fillArchitectures(p)
	if diff := cmp.Diff(profile(true, filled, arm, arm, amd), p); diff != "" {
		t.Errorf("filled in (-want +got):\n%s", diff)
	}

	old := p.DeepCopy()
	p.Spec.MachineCapabilities = nil
	removeCapabilities(p, old)
	bare := corev1beta1.MachineType{Architecture: new("arm64")}
	want := profile(false, corev1beta1.MachineImageVersion{Architectures: filled.Architectures},
		bare, bare, corev1beta1.MachineType{Architecture: new("amd64")})
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("given up (-want +got):\n%s", diff)
	}

	p = profile(false, both)
	fillArchitectures(p)
	removeCapabilities(p, p)
	if diff := cmp.Diff(profile(false, both), p); diff != "" {
		t.Errorf("a profile that never had any changes (-want +got):\n%s", diff)
	}
}
