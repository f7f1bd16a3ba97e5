package cloudprofile_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/cloudprofile"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func version(name string, classification corev1beta1.VersionClassification, expires ...time.Time) corev1beta1.ExpirableVersion {
	v := corev1beta1.ExpirableVersion{Version: name, Classification: &classification}
	if len(expires) > 0 {
		v.ExpirationDate = &metav1.Time{Time: expires[0]}
	}
	return v
}

func TestNewestKubernetes(t *testing.T) {
	offered := []corev1beta1.ExpirableVersion{
		version("1.37.0", corev1beta1.ClassificationPreview),
		version("1.36.1", corev1beta1.ClassificationSupported),
		version("1.35.10", corev1beta1.ClassificationSupported),
		version("1.35.9", corev1beta1.ClassificationDeprecated, now.Add(time.Hour)),
		version("1.34.9", corev1beta1.ClassificationDeprecated, now.Add(-time.Hour)),
		version("1.34.7", corev1beta1.ClassificationDeprecated),
	}
	for name, tc := range map[string]struct {
		wanted, want string
		complete     bool
		refused      bool
	}{
		"nothing gives the newest that is no preview": {wanted: "", want: "1.36.1"},
		"a major version": {wanted: "1", want: "1.36.1"},
		"a minor version, by number, not by letter": {wanted: "1.35", want: "1.35.10"},
		"not an expired one":                        {wanted: "1.34", want: "1.34.7"},
		"a minor version of previews only":          {wanted: "1.37", want: ""},
		"a complete version is left alone":          {wanted: "1.35.9", complete: true},
		"so is one that no profile has":             {wanted: "v1.35.4", complete: true},
		"a dot at the end":                          {wanted: "1.", want: "1.36.1"},
		"too many parts count by the first":         {wanted: "1.35.4.1", want: "1.36.1"},
		"no number":                                 {wanted: "1.x", refused: true},
		"a word":                                    {wanted: "latest", refused: true},
		"a minor version without a major one":       {wanted: ".1", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, complete, err := cloudprofile.ParseWanted(tc.wanted)
			if (err != nil) != tc.refused || complete != tc.complete {
				t.Fatalf("ParseWanted(%q) is complete: %t, error: %v", tc.wanted, complete, err)
			}
			if complete || err != nil {
				return
			}
			if got := cloudprofile.NewestKubernetes(offered, wanted, now); got != tc.want {
				t.Errorf("NewestKubernetes(%q) = %q, want %q", tc.wanted, got, tc.want)
			}
		})
	}
}

func TestNewestImage(t *testing.T) {
	image := &corev1beta1.MachineImage{Name: "os", Versions: []corev1beta1.MachineImageVersion{
		{ExpirableVersion: version("3.0.0", corev1beta1.ClassificationPreview), Architectures: []string{"amd64"}},
		{ExpirableVersion: version("2.1.0", corev1beta1.ClassificationDeprecated), Architectures: []string{"amd64"}},
		{ExpirableVersion: version("1.2.0", corev1beta1.ClassificationSupported), Architectures: []string{"amd64"}},
		{ExpirableVersion: version("2.0.0", corev1beta1.ClassificationSupported), Architectures: []string{"arm64"}},
	}}
	profile := &corev1beta1.CloudProfileSpec{}
	for name, tc := range map[string]struct{ architecture, wanted, want string }{
		"one that is not deprecated goes first": {architecture: "amd64", want: "1.2.0"},
		"a deprecated one if it is named":       {architecture: "amd64", wanted: "2", want: "2.1.0"},
		"one for the architecture":              {architecture: "arm64", want: "2.0.0"},
		"none":                                  {architecture: "riscv64", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, _, err := cloudprofile.ParseWanted(tc.wanted)
			if err != nil {
				t.Fatal(err)
			}
			got := cloudprofile.NewestImage(image, wanted, now, func(v *corev1beta1.MachineImageVersion) bool {
				return cloudprofile.RunsOn(profile, v, tc.architecture, nil)
			})
			if got != tc.want {
				t.Errorf("NewestImage() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRunsOnWithCapabilities(t *testing.T) {
	profile := &corev1beta1.CloudProfileSpec{MachineCapabilities: []corev1beta1.CapabilityDefinition{
		{Name: "architecture", Values: []string{"amd64", "arm64"}}, {Name: "hypervisor", Values: []string{"gen1", "gen2"}},
	}}
	gen := func(n string) *corev1beta1.MachineType {
		return &corev1beta1.MachineType{Capabilities: corev1beta1.Capabilities{"architecture": {"amd64"}, "hypervisor": {n}}}
	}
	flavor := corev1beta1.MachineImageFlavor{Capabilities: corev1beta1.Capabilities{"architecture": {"amd64"}, "hypervisor": {"gen1"}}}
	image := &corev1beta1.MachineImageVersion{CapabilityFlavors: []corev1beta1.MachineImageFlavor{flavor}}
	for name, tc := range map[string]struct {
		image        *corev1beta1.MachineImageVersion
		machineType  *corev1beta1.MachineType
		architecture string
		want         bool
	}{
		"the same capabilities":       {image: image, machineType: gen("gen1"), architecture: "amd64", want: true},
		"another hypervisor":          {image: image, machineType: gen("gen2"), architecture: "amd64"},
		"another architecture":        {image: image, machineType: gen("gen1"), architecture: "arm64"},
		"an image that says nothing":  {image: &corev1beta1.MachineImageVersion{}, machineType: gen("gen2"), architecture: "arm64", want: true},
		"a machine that says nothing": {image: image, machineType: &corev1beta1.MachineType{}, architecture: "amd64", want: true},
		"an unknown machine type":     {image: image, architecture: "amd64", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cloudprofile.RunsOn(profile, tc.image, tc.architecture, tc.machineType); got != tc.want {
				t.Errorf("RunsOn() = %t, want %t", got, tc.want)
			}
		})
	}
}
