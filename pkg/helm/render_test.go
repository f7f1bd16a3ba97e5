package helm

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"

	"gardener.cloud/gardener/internal/chart/charttest"
)

const meta = "apiVersion: v2\nname: x\nversion: 1.0.0\n"

func TestRender(t *testing.T) {
	archive := charttest.Pack(t,
		"Chart.yaml", meta, "values.yaml", "a: chart\nb: chart\n",
		"crds/kind.yaml", "apiVersion: v1\nkind: Kind\nmetadata: {name: first}\n",
		"templates/_helper.tpl", `{{ define "n" }}{{ .Release.Name }}{{ end }}`, "templates/NOTES.txt", "hello",
		"templates/a.yaml", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ include \"n\" . }}, namespace: {{ .Release.Namespace }}}\n"+
			"data: {a: {{ .Values.a }}, b: {{ .Values.b }}, minor: \"{{ .Capabilities.KubeVersion.Minor }}\"}\n---\n# nothing\n---\n"+
			"{{ if .Values.no }}kind: No{{ end }}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
	)
	objects, err := Render(archive, Release{
		Name: "r", Namespace: "ns", Values: map[string]any{"a": "override"}, Kubernetes: version.Info{GitVersion: "v1.35.2", Major: "1", Minor: "35"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, object := range objects {
		got = append(got, object.Object)
	}
	want := []any{
		map[string]any{"apiVersion": "v1", "kind": "Kind", "metadata": map[string]any{"name": "first"}},
		map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "r", "namespace": "ns"},
			"data": map[string]any{"a": "override", "b": "chart", "minor": "35"},
		},
		map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Render() (-want +got):\n%s", diff)
	}
}

func TestAppVersion(t *testing.T) {
	for want, meta := range map[string]string{"v1.2.3": meta + "appVersion: v1.2.3\n", "": meta} {
		if got, err := AppVersion(charttest.Pack(t, "Chart.yaml", meta)); err != nil || got != want {
			t.Errorf("AppVersion() = %q, %v, want %q", got, err, want)
		}
	}
	if _, err := AppVersion([]byte("x")); err == nil {
		t.Error("there is no error for what is no chart")
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		archive []byte
		want    string
	}{
		"not an archive":    {[]byte("chart"), "read chart"},
		"no chart":          {charttest.Pack(t, "a", "b"), "read chart"},
		"a broken template": {charttest.Pack(t, "Chart.yaml", meta, "templates/a.yaml", "{{ fail \"no\" }}"), "render chart"},
		"invalid YAML":      {charttest.Pack(t, "Chart.yaml", meta, "templates/a.yaml", "a: b: c"), "is not valid YAML"},
		"not an object":     {charttest.Pack(t, "Chart.yaml", meta, "templates/a.yaml", "a: b"), "without apiVersion, kind or metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Render(tc.archive, Release{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Render() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestRenderDirectory(t *testing.T) {
	directory := fstest.MapFS{
		"Chart.yaml":       {Data: []byte(meta)},
		"templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n")},
	}
	objects, err := RenderDirectory(directory, Release{Name: "r"})
	if err != nil || len(objects) != 1 || objects[0].GetName() != "r" {
		t.Errorf("RenderDirectory() = %v, %v", objects, err)
	}
	if _, err := RenderDirectory(fstest.MapFS{}, Release{}); err == nil {
		t.Error("an empty directory is rendered")
	}
}
