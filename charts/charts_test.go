package charts_test

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/chart"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/test/golden"
)

func TestProviderLocal(t *testing.T) {
	archive, err := charts.Archive(charts.ProviderLocal)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := charts.Archive(charts.ProviderLocal); err != nil || !bytes.Equal(archive, again) {
		t.Errorf("the chart differs the second time (%v)", err)
	}
	rendered, err := chart.Render(archive, chart.Release{
		Name: "provider-local", Namespace: "extension-provider-local-abcde", Kubernetes: version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"},
		Values: map[string]any{
			"image": "registry.example/gardener:v1", "dns": map[string]any{"clusterIP": "10.2.0.53"},
			"images": map[string]any{"flannel": "registry.example/flannel:v1"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, object := range rendered {
		objects = append(objects, object)
		if object.GetKind() != "ConfigMap" {
			continue
		}
		data := object.Object["data"].(map[string]any)
		kind := configfile.Kind[providerlocalconfigv1alpha1.ProviderLocalConfiguration]{
			AddToScheme: providerlocalconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateProviderLocal,
		}
		if _, err := kind.Decode([]byte(data["config.yaml"].(string))); err != nil {
			t.Errorf("the process would not take its configuration: %v", err)
		}
	}
	golden.Objects(t, "provider-local.yaml", objects)
}

func TestArchiveOfNothing(t *testing.T) {
	if _, err := charts.Archive("nothing"); err == nil {
		t.Error("there is a chart of nothing")
	}
}
