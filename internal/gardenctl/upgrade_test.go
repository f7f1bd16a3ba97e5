package gardenctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A gardenlet could not start with a file that it cannot read.
func TestUpgradeOverwrites(t *testing.T) {
	for name, tc := range map[string]struct {
		images, components string
		err                string
	}{
		"both": {
			images:     "images:\n- name: gardener\n  ref: registry.example.com/gardener@sha256:abc\ncharts:\n- name: gardenlet\n  ref: registry.example.com/gardenlet:v1\n",
			components: "components:\n- name: etcd-druid\n  imageVectorOverwrite: |\n    images: []\n",
		},
		"none, in empty files":      {},
		"no image vector":           {images: "images: text", err: "--image-vector-overwrite: "},
		"no component image vector": {components: "components: text", err: "--component-image-vector-overwrite: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			u := upgrade{images: filepath.Join(dir, "images.yaml"), components: filepath.Join(dir, "components.yaml")}
			for path, text := range map[string]string{u.images: tc.images, u.components: tc.components} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := u.overwrites()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("the error is %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || *got.Images != tc.images || *got.Components != tc.components {
				t.Errorf("overwrites() = %+v, %v", got, err)
			}
		})
	}
	if got, err := (upgrade{}).overwrites(); err != nil || got.Images != nil || got.Components != nil {
		t.Errorf("without files: %+v, %v", got, err)
	}
	if _, err := (upgrade{images: "missing.yaml"}).overwrites(); err == nil || !strings.Contains(err.Error(), "--image-vector-overwrite: open missing.yaml") {
		t.Errorf("the error is %v", err)
	}
}
