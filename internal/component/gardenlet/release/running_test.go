package release

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/test/builder"
)

// What a gardenlet gets from gardener-operator, and not from its Gardenlet, it gets again when it deploys itself: nothing changes.
func TestRunningIsRenderedAgain(t *testing.T) {
	archive, err := charts.Archive(charts.Gardenlet)
	if err != nil {
		t.Fatal(err)
	}
	render := func(v Values, address string) []client.Object {
		config, err := ReadConfiguration(builder.Gardenlet("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Connect(address); err != nil {
			t.Fatal(err)
		}
		values, err := v.Chart(builder.Gardenlet("a"), config)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := Objects(archive, version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}, values)
		if err != nil {
			t.Fatal(err)
		}
		return objects
	}
	for name, v := range map[string]Values{
		"all":                         {Image: "registry.example/gardener:v1", ImageVectorOverwrite: "images:\n- name: a\n  ref: b\n", ComponentImageVectorOverwrites: "components: []"},
		"files without a last line":   {Image: "registry.example/gardener:v1", ImageVectorOverwrite: "images: []"},
		"files with empty last lines": {Image: "registry.example/gardener:v1", ImageVectorOverwrite: "images: []\n\n\n"},
		"the image only":              {Image: "registry.example/gardener@sha256:0123"},
	} {
		t.Run(name, func(t *testing.T) {
			want := render(v, "https://api.garden.example")
			cluster := fake.NewClientBuilder().Build()
			for _, o := range want {
				if err := cluster.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			running, err := ReadRunning(t.Context(), cluster)
			if err != nil {
				t.Fatal(err)
			}
			if running.Chart != workload.Checksum(string(archive)) || running.Image != v.Image || running.GardenAddress != "https://api.garden.example" {
				t.Errorf("ReadRunning() = %+v", running)
			}
			got := render(Values{
				Image: running.Image, ImageVectorOverwrite: running.ImageVectorOverwrite, ComponentImageVectorOverwrites: running.ComponentImageVectorOverwrites,
			}, running.GardenAddress)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("deployed again (-first +again):\n%s", diff)
			}
		})
	}
	if running, err := ReadRunning(t.Context(), fake.NewClientBuilder().Build()); err != nil || running != (Running{}) {
		t.Errorf("ReadRunning() without one = %+v, %v", running, err)
	}
}
