package guard

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/test/golden"
)

// The guard of what the chart deploys.
func TestObjects(t *testing.T) {
	archive, err := charts.Archive(charts.Gardenlet)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := release.Objects(archive, version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}, map[string]any{
		"imageVectorOverwrite": "images: []", "env": []any{map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": "api.example.com"}},
		"podLabels":   map[string]any{"team": "a"},
		"tolerations": []any{map[string]any{"key": "seed", "operator": "Exists"}},
		"config":      map[string]any{"seedConfig": map[string]any{"metadata": map[string]any{"name": "a"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var previous []trial.Previous
	for _, object := range rendered {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		previous = append(previous, trial.Previous{Object: &unstructured.Unstructured{Object: content}})
	}
	role, err := Role(previous)
	if err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) < 20 {
		t.Errorf("the guard has %d rules, want those of the gardenlet", len(role.Rules))
	}
	objects, err := Objects(previous, "uid")
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", append([]client.Object(nil), objects...))
}

// A gardenlet that does not run in the seed has nothing that could be rolled back.
func TestNoDeployment(t *testing.T) {
	if _, err := Objects(nil, "uid"); err == nil || !strings.Contains(err.Error(), "cannot update itself") {
		t.Errorf("Objects() = %v", err)
	}
}
