package wave

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

func target(t *testing.T, version, ref string) Target {
	t.Helper()
	target, err := ParseTarget(version, ref, Overwrites{})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestParseTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		version, ref string
		want, tag    string // the target is refused if empty
	}{
		"a version":                      {version: "v1.151.0", want: "v1.151.0", tag: "v1.151.0"},
		"without v":                      {version: "1.151.0", want: "v1.151.0", tag: "1.151.0"},
		"a build":                        {version: "v1.151.0-dev+abc", want: "v1.151.0-dev+abc", tag: "v1.151.0-dev_abc"},
		"a chart":                        {ref: "registry.example.com:5000/gardenlet:v1.151.0", want: "v1.151.0", tag: "v1.151.0"},
		"a chart of a build":             {ref: "registry.example.com/gardenlet:v1.151.0-dev_abc", want: "v1.151.0-dev+abc", tag: "v1.151.0-dev_abc"},
		"a chart of another version":     {version: "v1.151.0", ref: "registry.example.com/gardenlet:stable", want: "v1.151.0", tag: "v1.151.0"},
		"a chart with a digest":          {version: "v1.151.0", ref: "registry.example.com/gardenlet@sha256:abc", want: "v1.151.0", tag: "v1.151.0"},
		"only a digest":                  {ref: "registry.example.com/gardenlet@sha256:abc"},
		"a digest wins over a tag":       {ref: "registry.example.com/gardenlet:v1.151.0@sha256:abc"},
		"a chart without a tag":          {ref: "registry.example.com:5000/gardenlet"},
		"a chart with a tag like stable": {ref: "registry.example.com/gardenlet:stable"},
		"no version":                     {version: "v1.151"},
		"nothing":                        {},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseTarget(tc.version, tc.ref, Overwrites{})
			if tc.want == "" {
				if err == nil {
					t.Errorf("the target is %+v, want an error", got)
				}
				return
			}
			if err != nil || got.String() != tc.want || got.tag != tc.tag || got.ref != tc.ref {
				t.Errorf("the target is %s with tag %s, %v; want %s with tag %s", got, got.tag, err, tc.want, tc.tag)
			}
		})
	}
}

func TestDeployment(t *testing.T) {
	secret := &corev1.LocalObjectReference{Name: "pull"}
	for name, tc := range map[string]struct {
		ref   string
		chart gardencorev1.OCIRepository
		image *seedmanagementv1alpha1.Image
		want  gardencorev1.OCIRepository
		// wantImage is that of image if nil.
		wantImage *seedmanagementv1alpha1.Image
		refused   bool
	}{
		"a reference": {
			chart: gardencorev1.OCIRepository{Ref: new("registry.example.com:5000/gardenlet:v1.150.0"), PullSecretRef: secret},
			want:  gardencorev1.OCIRepository{Ref: new("registry.example.com:5000/gardenlet:v1.151.0"), PullSecretRef: secret},
		},
		"a reference with a digest": {
			chart: gardencorev1.OCIRepository{Ref: new("registry.example.com/gardenlet:v1.150.0@sha256:abc")},
			want:  gardencorev1.OCIRepository{Ref: new("registry.example.com/gardenlet:v1.151.0")},
		},
		"a repository with a tag and a digest": {
			chart: gardencorev1.OCIRepository{Repository: new("registry.example.com/gardenlet"), Tag: new("v1.150.0"), Digest: new("sha256:abc"), PullSecretRef: secret},
			want:  gardencorev1.OCIRepository{Repository: new("registry.example.com/gardenlet"), Tag: new("v1.151.0"), PullSecretRef: secret},
		},
		"another chart": {
			ref:   "registry.example.com/other@sha256:def",
			chart: gardencorev1.OCIRepository{Repository: new("registry.example.com/gardenlet"), Tag: new("v1.150.0"), PullSecretRef: secret},
			want:  gardencorev1.OCIRepository{Ref: new("registry.example.com/other@sha256:def"), PullSecretRef: secret},
		},
		"an image with a tag": {
			image:     &seedmanagementv1alpha1.Image{Repository: new("registry.example.com/gardener"), Tag: new("v1.150.0")},
			want:      gardencorev1.OCIRepository{Tag: new("v1.151.0")},
			wantImage: &seedmanagementv1alpha1.Image{Repository: new("registry.example.com/gardener"), Tag: new("v1.151.0")},
		},
		"an image by reference": {
			image:     &seedmanagementv1alpha1.Image{Ref: new("registry.example.com/gardener:v1.150.0")},
			want:      gardencorev1.OCIRepository{Tag: new("v1.151.0")},
			wantImage: &seedmanagementv1alpha1.Image{Ref: new("registry.example.com/gardener:v1.151.0")},
		},
		"an image whose tag is that of the chart": {
			image: &seedmanagementv1alpha1.Image{Repository: new("registry.example.com/gardener")},
			want:  gardencorev1.OCIRepository{Tag: new("v1.151.0")},
		},
		"an image with a digest": {image: &seedmanagementv1alpha1.Image{Ref: new("registry.example.com/gardener@sha256:abc")}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := &seedmanagementv1alpha1.Gardenlet{}
			d := &g.Spec.Deployment
			d.Helm.OCIRepository, d.Image = tc.chart, tc.image.DeepCopy()
			if err := target(t, "v1.151.0", tc.ref).deployment(g); (err != nil) != tc.refused {
				t.Fatalf("the error is %v", err)
			} else if err != nil {
				return
			}
			wantImage := tc.image
			if tc.wantImage != nil {
				wantImage = tc.wantImage
			}
			if diff := cmp.Diff(tc.want, d.Helm.OCIRepository) + cmp.Diff(wantImage, d.Image); diff != "" {
				t.Errorf("deployment() (-want +got):\n%s", diff)
			}
		})
	}
}

// What an operator gives to gardenctl replaces what Gardenlets have. gardener-operator replaces only what it has written itself.
func TestOverwrites(t *testing.T) {
	text := func(s string) Overwrites { return Overwrites{Images: &s} }
	for name, tc := range map[string]struct {
		given   Overwrites
		follows bool
		current *string
		// by is the text that gardener-operator has written. Nil if it has not.
		by   *string
		want *string
	}{
		"none is given":                      {current: new("former"), want: new("former")},
		"gardenctl, to one without":          {given: text("new"), want: new("new")},
		"gardenctl, to one with":             {given: text("new"), current: new("former"), want: new("new")},
		"gardenctl removes it":               {given: text(""), current: new("former"), want: new("")},
		"operator, to one without":           {given: text("new"), follows: true, want: new("new")},
		"operator, to one with its own":      {given: text("new"), follows: true, current: new("own"), want: new("own")},
		"operator, to one with the former":   {given: text("new"), follows: true, current: new("former"), by: new("former"), want: new("new")},
		"operator, to one that was changed":  {given: text("new"), follows: true, current: new("own"), by: new("former"), want: new("own")},
		"operator, to one that was removed":  {given: text("new"), follows: true, by: new("former"), want: new("new")},
		"operator has none, nor the other":   {given: text(""), follows: true},
		"operator has none any more":         {given: text(""), follows: true, current: new("former"), by: new("former"), want: new("")},
		"operator has none, and it its own":  {given: text(""), follows: true, current: new("own"), want: new("own")},
		"operator has one again":             {given: text("new"), follows: true, current: new(""), by: new(""), want: new("new")},
		"operator, to one that has none set": {given: text("new"), follows: true, current: new(""), want: new("")},
	} {
		t.Run(name, func(t *testing.T) {
			g := &seedmanagementv1alpha1.Gardenlet{}
			g.Spec.Deployment.ImageVectorOverwrite = tc.current
			if tc.by != nil {
				setAnnotation(g, AnnotationImages, workload.Checksum(*tc.by))
			}
			target := Target{tag: "v1.151.0", overwrites: tc.given, follows: tc.follows}
			for range 2 { // the second time changes nothing
				if err := target.deployment(g); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, g.Spec.Deployment.ImageVectorOverwrite); diff != "" || g.Spec.Deployment.ComponentImageVectorOverwrite != nil {
					t.Errorf("imageVectorOverwrite (-want +got):\n%s", diff)
				}
			}
		})
	}
}
