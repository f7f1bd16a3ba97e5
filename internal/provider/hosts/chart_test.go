package hosts

import (
	"errors"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"

	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/pkg/helm"
)

// TestFlagsOfChart parses what the chart starts the process with, which refuses a flag or a controller that it does not know.
func TestFlagsOfChart(t *testing.T) {
	archive, err := charts.Archive(charts.ProviderHosts)
	if err != nil {
		t.Fatal(err)
	}
	for name, gardener := range map[string]any{"seed": nil, "garden": map[string]any{"runtimeCluster": map[string]any{"enabled": "true"}}} {
		objects, err := helm.Render(archive, helm.Release{
			Name: Name, Namespace: "x", Kubernetes: version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"},
			Values: map[string]any{"image": "registry.example.com/gardener:v1", "gardener": gardener},
		})
		if err != nil {
			t.Fatal(err)
		}
		deployment := &appsv1.Deployment{}
		for _, object := range objects {
			if object.GetKind() != "Deployment" {
				continue
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
				t.Fatal(err)
			}
		}
		o, flags, image := NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError), ""
		o.AddFlags(flags)
		flags.StringVar(&image, "image", image, "")
		if err := errors.Join(flags.Parse(deployment.Spec.Template.Spec.Containers[0].Args[1:]), o.Validate()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
