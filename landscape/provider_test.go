package landscape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/charts"
)

// The examples name the kinds and types that the landscape has, and that the chart gives provider-local permissions for.
func TestProviderResources(t *testing.T) {
	want := providerResources()
	for _, file := range []string{"operator/extension.yaml", "gitops/extensions/extension.yaml"} {
		raw, err := os.ReadFile(filepath.Join("..", "example", file))
		if err != nil {
			t.Fatal(err)
		}
		found := &operatorv1alpha1.Extension{}
		if err := yaml.UnmarshalStrict(raw, found); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if found.Name != charts.ProviderLocal {
			t.Errorf("%s is Extension %q", file, found.Name)
		}
		if diff := cmp.Diff(want, found.Spec.Resources); diff != "" {
			t.Errorf("%s (-landscape +example):\n%s", file, diff)
		}
	}
	raw, err := os.ReadFile(filepath.Join("..", "charts", charts.ProviderLocal, "templates", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range want {
		if plural := pluralOf(resource); !strings.Contains(string(raw), plural+"/status") {
			t.Errorf("the chart gives no permissions for %s", plural)
		}
	}
}

// pluralOf is the resource of a kind.
func pluralOf(resource corev1beta1.ControllerResource) string {
	plural := strings.ToLower(resource.Kind)
	if strings.HasSuffix(plural, "entry") {
		return strings.TrimSuffix(plural, "y") + "ies"
	}
	return plural + "s"
}
