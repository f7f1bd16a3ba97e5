package gardenlet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/test/builder"
)

// A gardenlet gets the image of the operator with a chart of the same release only: in that of another one it may have other permissions and flags.
func TestImageBelongsToChart(t *testing.T) {
	released := func(version string) []byte {
		archive, _, err := charts.Released(charts.Gardenlet, charts.Release{Version: version, Repository: "registry.example/gardener"})
		if err != nil {
			t.Fatal(err)
		}
		return archive
	}
	// running renders the gardenlet that a chart was deployed with before.
	running := func(archive []byte, values release.Values) []client.Object {
		object := builder.Gardenlet("a")
		config, err := release.ReadConfiguration(object)
		if err != nil {
			t.Fatal(err)
		}
		chart, err := values.Chart(object, config)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := release.Objects(archive, version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}, chart)
		if err != nil {
			t.Fatal(err)
		}
		return objects
	}
	own := release.Values{Image: "mirror.example/gardener@sha256:own", ImageVectorOverwrite: "own\n", ComponentImageVectorOverwrites: "own components\n", HostsGarden: true}
	former := release.Values{Image: "mirror.example/gardener@sha256:former", ImageVectorOverwrite: "former\n", HostsGarden: true}
	ofChart := own
	ofChart.Image = ""
	formerOfChart := former
	formerOfChart.Image = ""
	for name, tc := range map[string]struct {
		chart   string
		running []client.Object
		want    release.Values
	}{
		"a chart of its release":                      {chart: "v1.150.0", want: own},
		"one that runs":                               {chart: "v1.150.0", running: running(released("v1.150.0"), former), want: own},
		"a chart of the release before":               {chart: "v1.149.3", want: ofChart},
		"a chart of another patch":                    {chart: "v1.150.1", want: ofChart},
		"one of the release before that runs":         {chart: "v1.149.3", running: running(released("v1.149.3"), former), want: former},
		"a chart of the release before, another runs": {chart: "v1.149.3", running: running(released("v1.149.2"), former), want: formerOfChart},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			for _, object := range tc.running {
				if gvk := object.GetObjectKind().GroupVersionKind(); gvk.Kind == "Deployment" || gvk.GroupVersion() == corev1.SchemeGroupVersion {
					api = api.WithObjects(object)
				}
			}
			r := &reconciler{Values: Values{
				Version: "v1.150.0-dev", Image: own.Image, ImageVectorOverwrite: own.ImageVectorOverwrite, ComponentImageVectorOverwrites: own.ComponentImageVectorOverwrites,
			}}
			got, err := r.valuesFor(t.Context(), &target{api: api.Build(), runtime: true}, released(tc.chart))
			if err != nil || got != tc.want {
				t.Errorf("valuesFor() = %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}
