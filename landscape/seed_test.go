package landscape

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kubernetesversion "k8s.io/apimachinery/pkg/version"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	operatorvalidation "gardener.cloud/gardener/internal/validation/operator"
	"gardener.cloud/gardener/pkg/helm"
)

func TestKubernetesVersions(t *testing.T) {
	got := kubernetesVersions([]string{"v1.35.4", "v1.36.10", "v1.36.3"})
	want := []corev1beta1.ExpirableVersion{{Version: "1.36.10"}, {Version: "1.36.3"}, {Version: "1.35.4"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

// Each seed serves the names of its own clusters, so with several seeds, each asks the others for names that it does not know.
func TestLocalDNS(t *testing.T) {
	runtime := Cluster{Name: "runtime", Machines: []Machine{{"runtime-0", 0, 0}}}
	other := Cluster{Name: "other", Number: 1, Machines: []Machine{{"other-0", 1, 0}}}
	second := Cluster{Name: "local-2", Number: 2, Machines: []Machine{{"local-2-0", 2, 0}}, Seed: true}
	for name, tc := range map[string]struct {
		clusters []Cluster
		servers  map[string][]string
		// seeds and garden are the values for seeds and for the garden itself.
		seeds, garden map[string]any
	}{
		"one seed": {
			clusters: []Cluster{runtime, other},
			servers:  map[string][]string{"runtime": {"10.2.0.53:53"}, "other": nil},
			seeds:    map[string]any{"clusterIPs": map[string]any{}, "servedByGarden": []string{"local"}, "zones": []string{"local.gardener.cloud"}},
			garden:   map[string]any{"clusterIP": "10.2.0.53", "zones": []string{"local.gardener.cloud"}},
		},
		"two seeds": {
			clusters: []Cluster{runtime, other, second},
			servers: map[string][]string{
				"runtime": {"10.2.0.53:53", "172.30.0.4:30053"}, "other": nil, "local-2": {"10.244.0.53:53", "172.30.0.2:30053"},
			},
			seeds: map[string]any{
				"clusterIPs": map[string]any{"local-2": "10.244.0.53"}, "servedByGarden": []string{"local"}, "zones": []string{"local.gardener.cloud"}, "nodePort": 30053,
			},
			garden: map[string]any{"clusterIP": "10.2.0.53", "zones": []string{"local.gardener.cloud"}, "nodePort": 30053},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Landscape{Name: "test", state: state{Clusters: tc.clusters}}
			got := map[string][]string{}
			for _, cluster := range tc.clusters {
				var servers []string
				for _, server := range l.localDNSServers(cluster) {
					servers = append(servers, server.String())
				}
				got[cluster.Name] = servers
			}
			if diff := cmp.Diff(tc.servers, got); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			seeds, garden := localDNSValues(tc.clusters, false)
			if diff := cmp.Diff([]map[string]any{tc.seeds, tc.garden}, []map[string]any{seeds, garden}); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterOfSeed(t *testing.T) {
	l := &Landscape{Name: "test", state: state{Clusters: []Cluster{{Name: "runtime"}, {Name: "other"}, {Name: "local-2", Seed: true}}}}
	for seed, want := range map[string]string{"local": "runtime", "local-2": "local-2"} {
		if cluster, err := l.clusterOfSeed(seed); err != nil || cluster.Name != want {
			t.Errorf("seed %q is cluster %q, %v, want %q", seed, cluster.Name, err, want)
		}
	}
	for seed, want := range map[string]string{"": "no seed yet", "other": `"other" is no cluster`, "runtime": `"runtime" is no cluster`} {
		if _, err := l.clusterOfSeed(seed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("seed %q: error = %v, want one with %q", seed, err, want)
		}
	}
}

// Another image, chart or configuration of a gardenlet is deployed.
func TestDeployedHash(t *testing.T) {
	hashes := map[string]bool{}
	for _, in := range [][3]string{{"image", "chart", "config"}, {"other", "chart", "config"}, {"image", "other", "config"}, {"image", "chart", "other"}} {
		hashes[deployedHash(in[0], in[1], []byte(in[2]))] = true
	}
	if len(hashes) != 4 {
		t.Errorf("there are %d hashes for 4 deployments", len(hashes))
	}
}

// The former gardenlet is not taken for the new one.
func TestGardenletDeployed(t *testing.T) {
	gardenlet := func(change func(*seedmanagementv1alpha1.Gardenlet)) *seedmanagementv1alpha1.Gardenlet {
		g := &seedmanagementv1alpha1.Gardenlet{}
		change(g)
		return g
	}
	for name, tc := range map[string]struct {
		gardenlet *seedmanagementv1alpha1.Gardenlet
		want      string
	}{
		"deployed": {gardenlet: gardenlet(func(*seedmanagementv1alpha1.Gardenlet) {})},
		"requested": {gardenlet: gardenlet(func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Annotations = map[string]string{constants.GardenerOperation: constants.OperationForceRedeploy}
		}), want: "not deployed"},
		"to another cluster": {gardenlet: gardenlet(func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig"}
		}), want: "not deployed"},
		"failed": {gardenlet: gardenlet(func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig"}
			g.Status.Conditions = []corev1beta1.Condition{{Status: corev1beta1.ConditionFalse, Message: "no chart"}}
		}), want: "no chart"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, gardenletDeployed(tc.gardenlet), tc.want) })
	}
}

// A Seed is ready when its last change is reconciled.
func TestSeedReady(t *testing.T) {
	seed := &corev1beta1.Seed{}
	seed.Generation = 2
	seed.Status = corev1beta1.SeedStatus{
		ObservedGeneration: 2, LastOperation: &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded},
		Conditions: []corev1beta1.Condition{
			{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue},
			{Type: corev1beta1.SeedSystemComponentsHealthy, Status: corev1beta1.ConditionTrue},
			{Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionTrue},
		},
	}
	wantError(t, seedReady(seed), "")
	seed.Generation++
	wantError(t, seedReady(seed), "has not reconciled the last change")
}

// Seeds differ in what they must not share.
func TestSeed(t *testing.T) {
	u := &upRun{Landscape: &Landscape{Name: "mine"}}
	first := u.seed(Cluster{Name: "runtime"})
	second := u.seed(Cluster{Name: "local-2", Number: 1, Seed: true})
	if first.Name != "local" || second.Name != "local-2" {
		t.Errorf("the seeds are %q and %q", first.Name, second.Name)
	}
	if want := "ingress.local-2.seed.mine.local.gardener.cloud"; second.Spec.Ingress.Domain != want {
		t.Errorf("the ingress domain is %q, want %q", second.Spec.Ingress.Domain, want)
	}
	for _, networks := range [][2]string{{first.Spec.Networks.Pods, second.Spec.Networks.Pods}, {first.Spec.Networks.Services, second.Spec.Networks.Services}} {
		if netip.MustParsePrefix(networks[0]).Overlaps(netip.MustParsePrefix(networks[1])) {
			t.Errorf("networks %v overlap", networks)
		}
	}
}

// The seed, the garden and the cloud profile have the zones of the machines. With one zone, nothing has more pods than before; with three, the garden
// survives the loss of one.
func TestZones(t *testing.T) {
	for name, tc := range map[string]struct {
		machines       []Machine
		zones, garden  []string
		replicas       int32
		available, pin bool
	}{
		"one": {machines: []Machine{{"runtime-0", 0, 0}, {"runtime-1", 1, 0}}, zones: []string{"0"}, replicas: 1},
		"two": {machines: []Machine{{"runtime-0", 0, 0}, {"runtime-1", 1, 1}}, zones: []string{"0", "1"}, garden: []string{"0", "1"}, replicas: 2, pin: true},
		"three": {
			machines: []Machine{{"runtime-0", 0, 0}, {"runtime-1", 1, 1}, {"runtime-2", 2, 2}, {"runtime-3", 3, 0}},
			zones:    []string{"0", "1", "2"}, garden: []string{"0", "1", "2"}, replicas: 2, available: true, pin: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := Cluster{Name: "runtime", Version: "v1.36.3", Machines: tc.machines}
			u := &upRun{Landscape: &Landscape{Name: "mine", state: state{Clusters: []Cluster{cluster}}}}
			if diff := cmp.Diff(tc.zones, u.seed(cluster).Spec.Provider.Zones); diff != "" {
				t.Errorf("zones of the seed (-want +got):\n%s", diff)
			}
			garden := u.gardenResource(cluster)
			if errs := operatorvalidation.ValidateGarden(garden); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			if diff := cmp.Diff(tc.garden, garden.Spec.RuntimeCluster.Provider.Zones); diff != "" {
				t.Errorf("zones of the garden (-want +got):\n%s", diff)
			}
			if available := garden.Spec.VirtualCluster.ControlPlane != nil; available != tc.available {
				t.Errorf("the garden is highly available: %t, want %t", available, tc.available)
			}
			if cluster.replicas() != tc.replicas || providerReplicas(u.state.Clusters) != tc.replicas {
				t.Errorf("there are %d and %d pods, want %d", cluster.replicas(), providerReplicas(u.state.Clusters), tc.replicas)
			}
			profile := &corev1beta1.CloudProfile{Spec: corev1beta1.CloudProfileSpec{Regions: []corev1beta1.Region{{
				Name: "local", Zones: []corev1beta1.AvailabilityZone{{Name: "0"}},
			}}}}
			setZones(profile, cluster.zones())
			var zones []string
			for _, zone := range profile.Spec.Regions[0].Zones {
				zones = append(zones, zone.Name)
			}
			if diff := cmp.Diff(tc.zones, zones); diff != "" {
				t.Errorf("zones of the cloud profile (-want +got):\n%s", diff)
			}
			if pin := profile.Spec.ControlPlane != nil; pin != tc.pin {
				t.Errorf("zones of control planes may be chosen: %t, want %t", pin, tc.pin)
			}
		})
	}
}

// The Extension is valid, and what gardener-operator makes of it in the runtime cluster, and the gardenlet in a seed, are values of the chart.
func TestProviderExtension(t *testing.T) {
	seeds, garden := localDNSValues([]Cluster{{Name: "runtime", Machines: []Machine{{"runtime-0", 0, 0}}}}, false)
	raw := func(values map[string]any) *apiextensionsv1.JSON {
		data, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		return &apiextensionsv1.JSON{Raw: data}
	}
	e := extensionOf("provider-local", "172.30.0.1:5000/charts/provider-local:v1", providerResources(), raw(map[string]any{"image": "gardener", "dns": seeds}), raw(map[string]any{"image": "gardener", "dns": garden}))
	admission, err := admissionOf("172.30.0.1:5000/charts/runtime:v1", "172.30.0.1:5000/charts/application:v1", "gardener", 1)
	if err != nil {
		t.Fatal(err)
	}
	e.Spec.Deployment.Admission = admission
	if errs := operatorvalidation.ValidateExtension(e); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	archive, err := charts.Archive(charts.ProviderLocal)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		values      *apiextensionsv1.JSON
		own         map[string]any
		clusterRole string
		service     bool
	}{
		"in the runtime cluster": {
			e.Spec.Deployment.Extension.RuntimeClusterValues,
			map[string]any{"runtimeCluster": map[string]any{"enabled": "true", "priorityClassName": "gardener-garden-system-200"}},
			"gardener.cloud:provider-local:garden", true,
		},
		"in the same cluster as a seed": {
			e.Spec.Deployment.Extension.Values, map[string]any{"seed": map[string]any{"name": "local"}}, "gardener.cloud:provider-local", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := json.Unmarshal(tc.values.Raw, &values); err != nil {
				t.Fatal(err)
			}
			values["gardener"] = tc.own
			objects, err := helm.Render(archive, helm.Release{Name: e.Name, Namespace: "extension", Kubernetes: kubernetesversion.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}, Values: values})
			if err != nil {
				t.Fatal(err)
			}
			service := false
			for _, object := range objects {
				switch object.GetKind() {
				case "ClusterRole":
					if object.GetName() != tc.clusterRole {
						t.Errorf("it has ClusterRole %q, want %q", object.GetName(), tc.clusterRole)
					}
				case "Service":
					service = service || object.GetName() == "dns" // the other one is that of its webhook
				}
			}
			if service != tc.service {
				t.Errorf("it has the Service of its DNS server: %t, want %t", service, tc.service)
			}
		})
	}
}
