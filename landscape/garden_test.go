package landscape

import (
	"testing"

	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/distribution"
)

// A landscape runs the cluster-autoscaler that was built last, unless its user has set another image.
func TestImageOverwrite(t *testing.T) {
	const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	standard, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ overwrite, version, want string }{
		"the built one": {version: "1.36.3", want: "registry.local.gardener.cloud/gardener/cluster-autoscaler:0.1.0@" + digest},
		"one of the user": {
			overwrite: "images: [{name: cluster-autoscaler, ref: registry.example/autoscaler:v1}]", version: "1.36.3", want: "registry.example/autoscaler:v1",
		},
		"one of the user for a version": {
			overwrite: `images: [{name: cluster-autoscaler, ref: "registry.example/autoscaler:v1.35", targetVersion: "1.35.x"}]`, version: "1.35.4",
			want: "registry.example/autoscaler:v1.35",
		},
		"one of the user for another version": {
			overwrite: `images: [{name: cluster-autoscaler, ref: "registry.example/autoscaler:v1.35", targetVersion: "1.35.x"}]`, version: "1.36.3",
			want: "registry.local.gardener.cloud/gardener/cluster-autoscaler:0.1.0@" + digest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			images := standard
			if tc.overwrite != "" {
				overwrite, err := imagevector.Read([]byte(tc.overwrite))
				if err != nil {
					t.Fatal(err)
				}
				images = images.Overwrite(overwrite)
			}
			text, err := imageOverwrite(images, "registry.example/gardener@"+digest, distribution.Image{
				Reference: "registry.local.gardener.cloud/gardener/cluster-autoscaler:0.1.0", Digest: digest,
			})
			if err != nil {
				t.Fatal(err)
			}
			read, err := imagevector.Read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, name := range []string{"gardener", "cluster-autoscaler"} {
				image, err := standard.Overwrite(read).Find(name, imagevector.Query{TargetVersion: tc.version})
				if err != nil {
					t.Fatal(err)
				}
				got[name] = image.String()
			}
			if got["cluster-autoscaler"] != tc.want || got["gardener"] != "registry.example/gardener@"+digest {
				t.Errorf("images are %v, want %s", got, tc.want)
			}
		})
	}
}
