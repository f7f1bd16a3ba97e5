package imagevector

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCharts(t *testing.T) {
	for name, tc := range map[string]struct{ file, want, err string }{
		"those of the release":   {want: "registry.local.gardener.cloud/charts/gardenlet:v1.2.3"},
		"charts that are pushed": {file: "images: []\ncharts: [{name: gardenlet, ref: \"registry.example/charts/gardenlet:v1@sha256:0\"}]", want: "registry.example/charts/gardenlet:v1@sha256:0"},
		"a file for the original": {
			file: "images: [{name: gardenlet, repository: registry.example/gardenlet, tag: v2}]", want: "registry.example/gardenlet:v2",
		},
		"another chart":         {file: "charts: [{name: x, ref: y}]", want: "registry.local.gardener.cloud/charts/gardenlet:v1.2.3"},
		"a chart without place": {file: "charts: [{name: gardenlet}]", err: "charts[0].repository"},
		"another file":          {file: "components: []", err: `no key "images"`},
		"no YAML":               {file: "a: b: c", err: "parse charts"},
	} {
		t.Run(name, func(t *testing.T) {
			var files OverwriteFiles
			if tc.file != "" {
				path := filepath.Join(t.TempDir(), "charts.yaml")
				if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
				files = OverwriteFilesFromEnv(func(name string) string { return map[string]string{"IMAGEVECTOR_OVERWRITE_CHARTS": path}[name] })
			}
			charts, err := files.LoadCharts()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("the error is %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := charts.Find(GardenletChart, Query{})
			if err != nil || got.WithDefaultTag("v1.2.3").String() != tc.want {
				t.Errorf("the chart is %s, %v, want %s", got.WithDefaultTag("v1.2.3"), err, tc.want)
			}
		})
	}
}
