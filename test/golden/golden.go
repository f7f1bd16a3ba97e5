// Package golden compares rendered objects and texts with files that are reviewed like code.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Objects compares objects with a file below testdata, as YAML. Kinds of Kubernetes are registered; others are registered with add.
func Objects(t *testing.T, file string, objects []client.Object, add ...func(*runtime.Scheme) error) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, register := range append(add, clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme) {
		if err := register(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(gvk)
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.WriteString(ordered(string(data)))
	}
	Text(t, file, got.String())
}

// ordered sorts lines with references: the encoder compares numbers in keys as numbers, so other checksums change the order.
func ordered(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for start := 0; start < len(lines); start++ {
		end := start
		for end < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[end]), constants.ReferencePrefix) {
			end++
		}
		if end > start {
			slices.Sort(lines[start:end])
			start = end
		}
	}
	return strings.Join(lines, "")
}

// Text compares text with a file below testdata.
func Text(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; rewrite it with -update, and review it (-want +got):\n%s", path, diff)
	}
}
