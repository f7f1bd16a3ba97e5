package managedseed

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// A gardenlet inherits everything but its Seed, its credentials and its addresses.
func TestParentConfiguration(t *testing.T) {
	config := &gardenletconfigv1alpha1.GardenletConfiguration{
		GardenClientConnection: &gardenletconfigv1alpha1.GardenClientConnection{
			GardenClusterAddress: new("https://api.garden.example"), BootstrapKubeconfig: &corev1.SecretReference{Name: "b"}, KubeconfigSecret: &corev1.SecretReference{Name: "k"},
		},
		SeedClientConnection: &gardenletconfigv1alpha1.SeedClientConnection{}, SeedConfig: &gardenletconfigv1alpha1.SeedConfig{}, LogLevel: "debug",
	}
	config.GardenClientConnection.Kubeconfig, config.SeedClientConnection.Kubeconfig = "/garden", "/seed"
	config.SNI = &gardenletconfigv1alpha1.SNI{Ingress: &gardenletconfigv1alpha1.SNIIngress{ServiceExternalIP: new("192.0.2.1")}}
	config.ExposureClassHandlers = []gardenletconfigv1alpha1.ExposureClassHandler{{Name: "internet", SNI: config.SNI.DeepCopy()}}
	got, err := parentConfiguration(config)
	if err != nil {
		t.Fatal(err)
	}
	connection := map[string]any{"qps": float64(0), "burst": int64(0), "contentType": "", "acceptContentTypes": ""}
	withAddress := map[string]any{"gardenClusterAddress": "https://api.garden.example"}
	for key, value := range connection {
		withAddress[key] = value
	}
	gateway := map[string]any{"ingress": map[string]any{}}
	want := map[string]any{
		"gardenClientConnection": withAddress, "seedClientConnection": connection, "logLevel": "debug", "logFormat": "", "server": map[string]any{}, "sni": gateway,
		"exposureClassHandlers": []any{map[string]any{"name": "internet", "loadBalancerService": map[string]any{"annotations": nil}, "sni": gateway}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parentConfiguration() (-want +got):\n%s", diff)
	}
}

func TestAsGardenlet(t *testing.T) {
	parent := map[string]any{
		"logLevel": "debug", "logFormat": "text", "gardenClientConnection": map[string]any{"qps": float64(100)}, "list": []any{"a", "b"},
		"leaderElection": map[string]any{"leaseDuration": "15s"}, "controllers": map[string]any{"seed": map[string]any{"syncPeriod": "1h"}},
	}
	const own = `{"logLevel":"","logFormat":"json","gardenClientConnection":{"qps":0,"gardenClusterAddress":"https://a"},"list":["c"],` +
		`"leaderElection":{"leaseDuration":"0s"},"controllers":{"seed":{"syncPeriod":"0s"},"shoot":{"concurrentSyncs":0}},"seedConfig":{"spec":{}}}`
	for name, tc := range map[string]struct {
		merge *bool
		want  string
	}{
		"merged": {want: `{"logLevel":"debug","logFormat":"json","gardenClientConnection":{"qps":100,"gardenClusterAddress":"https://a"},"list":["c"],` +
			`"leaderElection":{"leaseDuration":"15s"},"controllers":{"seed":{"syncPeriod":"0s"},"shoot":{"concurrentSyncs":0}},"seedConfig":{"spec":{}}}`},
		"its own": {merge: new(false), want: own},
	} {
		t.Run(name, func(t *testing.T) {
			object := &seedmanagementv1alpha1.ManagedSeed{Spec: seedmanagementv1alpha1.ManagedSeedSpec{Gardenlet: seedmanagementv1alpha1.GardenletConfig{
				Config: &runtime.RawExtension{Raw: []byte(own)}, MergeWithParent: tc.merge,
				Deployment: &seedmanagementv1alpha1.GardenletDeployment{ReplicaCount: new(int32(1))},
			}}}
			object.Namespace, object.Name = "garden", "a"
			got, err := asGardenlet(object, parent)
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != "a" || *got.Spec.Deployment.ReplicaCount != 1 {
				t.Errorf("the Gardenlet is %+v", got)
			}
			if diff := cmp.Diff(decode(t, tc.want), decode(t, string(got.Spec.Config.Raw))); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func decode(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAdapt(t *testing.T) {
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{DNS: &corev1beta1.DNS{Domain: new("a.example.com")}}}
	own := corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "10.0.0.1"}
	for name, tc := range map[string]struct {
		env, want []corev1.EnvVar
	}{
		"by the domain":    {nil, []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "api.a.example.com"}}},
		"as the user says": {[]corev1.EnvVar{own}, []corev1.EnvVar{own}},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &seedmanagementv1alpha1.GardenletDeployment{Env: tc.env, PodAnnotations: map[string]string{"mine": "yes"}}
			adapt(deployment, shoot, map[string]string{"empty": "", "set": "yes"})
			want := &seedmanagementv1alpha1.GardenletDeployment{Env: tc.want, PodAnnotations: map[string]string{"mine": "yes", "set": "yes"}}
			if diff := cmp.Diff(want, deployment); diff != "" {
				t.Errorf("adapt() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWantsVPA(t *testing.T) {
	with := func(enabled bool) *corev1beta1.SeedSpec {
		return &corev1beta1.SeedSpec{Settings: &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: enabled}}}
	}
	if !wantsVPA(&corev1beta1.SeedSpec{}) || !wantsVPA(with(true)) || wantsVPA(with(false)) {
		t.Error("a Seed wants a vertical pod autoscaler, unless it says no")
	}
}
