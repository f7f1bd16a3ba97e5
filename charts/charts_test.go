package charts_test

import (
	"bytes"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/chart"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/test/golden"
)

// render renders the chart as gardenlet does.
func render(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	archive, err := charts.Archive(charts.ProviderLocal)
	if err != nil {
		t.Fatal(err)
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
	return rendered
}

func TestProviderLocal(t *testing.T) {
	archive, err := charts.Archive(charts.ProviderLocal)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := charts.Archive(charts.ProviderLocal); err != nil || !bytes.Equal(archive, again) {
		t.Errorf("the chart differs the second time (%v)", err)
	}
	var objects []client.Object
	for _, object := range render(t) {
		objects = append(objects, object)
		if object.GetKind() != "ConfigMap" {
			continue
		}
		data := object.Object["data"].(map[string]any)
		kind := configfile.Kind[providerlocalconfigv1alpha1.ProviderLocalConfiguration]{
			AddToScheme: providerlocalconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateProviderLocal,
		}
		if _, err := kind.Decode([]byte(data["config.yaml"].(string))); err != nil {
			t.Errorf("the configuration of provider-local is invalid: %v", err)
		}
	}
	golden.Objects(t, "provider-local.yaml", objects)
}

// RBAC does not allow to grant permissions that one does not have, so provider-local needs all those of the machine-controller-manager that it deploys.
func TestProviderLocalMayGrant(t *testing.T) {
	granted := &rbacv1.ClusterRole{}
	for _, object := range render(t) {
		if object.GetKind() == "ClusterRole" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, granted); err != nil {
				t.Fatal(err)
			}
		}
	}
	objects, err := machinecontrollermanager.Objects(machinecontrollermanager.Values{Namespace: "shoot--dev--crazy", Provider: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if role, ok := object.(*rbacv1.Role); ok {
			if covered, missing := validation.Covers(granted.Rules, role.Rules); !covered {
				t.Errorf("provider-local lacks permissions: %v", missing)
			}
		}
	}
}

func TestArchiveOfUnknownChart(t *testing.T) {
	if _, err := charts.Archive("nothing"); err == nil {
		t.Error("an unknown chart has an archive")
	}
}
