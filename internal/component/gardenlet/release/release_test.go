package release

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"

	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/test/builder"
)

func TestChart(t *testing.T) {
	const label = "networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443"
	with := Values{Image: "registry.example/gardener:v1", ImageVectorOverwrite: "operator", ComponentImageVectorOverwrites: "components"}
	config := map[string]any{
		"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
		"seedConfig":     map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{}},
		"leaderElection": map[string]any{"resourceNamespace": "garden"},
		"gardenClientConnection": map[string]any{
			"gardenClusterAddress": "https://api.garden.example",
			"kubeconfigSecret":     map[string]any{"name": "gardenlet-kubeconfig", "namespace": "garden"},
			"bootstrapKubeconfig":  map[string]any{"name": "gardenlet-kubeconfig-bootstrap", "namespace": "garden"},
		},
	}
	for name, tc := range map[string]struct {
		change  func(*seedmanagementv1alpha1.Gardenlet)
		runtime bool
		want    map[string]any
	}{
		"what the operator has": {want: map[string]any{
			"image":                map[string]any{"ref": "registry.example/gardener:v1"},
			"imageVectorOverwrite": "operator\n", "componentImageVectorOverwrites": "components\n", "config": config,
		}},
		"what the Gardenlet has": {
			change: func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Spec.Deployment.ReplicaCount = new(int32(3))
				g.Spec.Deployment.Image = &seedmanagementv1alpha1.Image{Repository: new("registry.example/own"), Tag: new("v2")}
				g.Spec.Deployment.ImageVectorOverwrite, g.Spec.Deployment.ComponentImageVectorOverwrite = new("own"), new("own components")
				g.Spec.Deployment.PodLabels = map[string]string{"team": "b"}
			},
			runtime: true,
			want: map[string]any{
				"replicaCount": float64(3), "image": map[string]any{"repository": "registry.example/own", "tag": "v2"},
				"podLabels":            map[string]any{"team": "b", label: "allowed"},
				"imageVectorOverwrite": "own\n", "componentImageVectorOverwrites": "own components\n", "config": config,
			},
		},
		"no overwrite, whatever the operator has": {
			change: func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Spec.Deployment.ImageVectorOverwrite, g.Spec.Deployment.ComponentImageVectorOverwrite = new(""), new("")
			},
			want: map[string]any{"image": map[string]any{"ref": "registry.example/gardener:v1"}, "config": config},
		},
		"an image with a pull policy only": {
			change: func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Spec.Deployment.Image = &seedmanagementv1alpha1.Image{PullPolicy: new(corev1.PullAlways)}
			},
			want: map[string]any{
				"image":                map[string]any{"ref": "registry.example/gardener:v1", "pullPolicy": "Always"},
				"imageVectorOverwrite": "operator\n", "componentImageVectorOverwrites": "components\n", "config": config,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := builder.Gardenlet("a")
			if tc.change != nil {
				tc.change(g)
			}
			read, err := ReadConfiguration(g)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := read.Connect("https://api.garden.example"); err != nil {
				t.Fatal(err)
			}
			with := with
			with.HostsGarden = tc.runtime
			got, err := with.Chart(g, read)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Chart() (-want +got):\n%s", diff)
			}
		})
	}
}

// What the configuration says about the connection to the garden stays, unless the operator would write or delete a Secret of something else.
func TestConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		want   Connection
		names  string
	}{
		"defaults": {config: `null`, want: Connection{
			Address:    "https://api.garden.example",
			Kubeconfig: corev1.SecretReference{Namespace: "garden", Name: "gardenlet-kubeconfig"},
			Bootstrap:  corev1.SecretReference{Namespace: "garden", Name: "gardenlet-kubeconfig-bootstrap"},
		}},
		"own": {config: `{"gardenClusterAddress":"https://10.0.0.1","kubeconfigSecret":null,"bootstrapKubeconfig":{"name":"gardenlet-first","namespace":"garden"}}`, want: Connection{
			Address:    "https://10.0.0.1",
			Kubeconfig: corev1.SecretReference{Namespace: "garden", Name: "gardenlet-kubeconfig"},
			Bootstrap:  corev1.SecretReference{Namespace: "garden", Name: "gardenlet-first"},
		}},
		"another namespace":              {config: `{"kubeconfigSecret":{"name":"gardenlet-kubeconfig","namespace":"kube-system"}}`, names: `kubeconfigSecret.namespace: must be "garden"`},
		"another name":                   {config: `{"kubeconfigSecret":{"name":"ca-etcd","namespace":"garden"}}`, names: `kubeconfigSecret.name: must begin with "gardenlet-"`},
		"another namespace to bootstrap": {config: `{"bootstrapKubeconfig":{"name":"gardenlet-first","namespace":"other"}}`, names: `bootstrapKubeconfig.namespace: must be "garden"`},
		"another name to bootstrap":      {config: `{"bootstrapKubeconfig":{"name":"first"}}`, names: `bootstrapKubeconfig.name: must begin`},
		"one for both":                   {config: `{"bootstrapKubeconfig":{"name":"gardenlet-kubeconfig"}}`, names: `bootstrapKubeconfig.name: must not be`},
	} {
		t.Run(name, func(t *testing.T) {
			config := Configuration{}
			if err := json.Unmarshal([]byte(`{"gardenClientConnection":`+tc.config+`}`), &config); err != nil {
				t.Fatal(err)
			}
			got, err := config.Connect("https://api.garden.example")
			if got != tc.want || (err == nil) != (tc.names == "") || err != nil && !strings.Contains(err.Error(), "spec.config.gardenClientConnection."+tc.names) {
				t.Errorf("Connect() = %+v, %v, want %+v and an error with %q", got, err, tc.want, tc.names)
			}
		})
	}
}

func TestConfigurationWithoutSeed(t *testing.T) {
	g := builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config = nil })
	if _, err := ReadConfiguration(g); err == nil || !strings.Contains(err.Error(), "spec.config.seedConfig") {
		t.Errorf("the error is %v", err)
	}
}

// The Deployment says with which chart it was deployed, so that the gardenlet finds out whether an image comes from it.
func TestObjects(t *testing.T) {
	archive, err := charts.Archive(charts.Gardenlet)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadConfiguration(builder.Gardenlet("a"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := Values{}.Chart(builder.Gardenlet("a"), read)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Objects(archive, version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}, values)
	if err != nil {
		t.Fatal(err)
	}
	annotated := 0
	for _, o := range objects {
		if o.GetAnnotations()[AnnotationChart] == workload.Checksum(string(archive)) && o.GetName() == "gardenlet" && o.GetNamespace() == "garden" {
			annotated++
		}
	}
	if annotated != 1 {
		t.Errorf("%d objects say with which chart they were deployed, want the Deployment", annotated)
	}
}

func TestLease(t *testing.T) {
	for want, config := range map[string]Configuration{
		"gardenlet-leader-election": {"leaderElection": map[string]any{"resourceNamespace": "garden"}},
		"own":                       {"leaderElection": map[string]any{"leaderElect": true, "resourceName": "own"}},
		"":                          {"leaderElection": map[string]any{"leaderElect": false, "resourceName": "own"}},
	} {
		if got := config.Lease(); got != want {
			t.Errorf("Lease() of %v = %q, want %q", config, got, want)
		}
	}
}
