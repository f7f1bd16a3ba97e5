package managedseed_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/managedseed"
)

func shoot(name string, change func(*corev1beta1.ShootSpec)) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, Spec: corev1beta1.ShootSpec{
		SeedName: new("parent"), Region: "here",
		DNS:        &corev1beta1.DNS{Domain: new("seed.example.org")},
		Networking: &corev1beta1.Networking{Nodes: new("10.1.0.0/16"), Pods: new("10.2.0.0/16"), Services: new("10.3.0.0/16")},
		Kubernetes: corev1beta1.Kubernetes{VerticalPodAutoscaler: &corev1beta1.VerticalPodAutoscaler{Enabled: true}},
		Provider:   corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{Zones: []string{"b"}}, {Zones: []string{"a", "b"}}}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// complete is what a seed of the Shoot looks like.
func complete() corev1beta1.SeedSpec {
	return corev1beta1.SeedSpec{
		Backup: &corev1beta1.Backup{Provider: "local"},
		DNS: corev1beta1.SeedDNS{Provider: &corev1beta1.SeedDNSProvider{
			Type: "dns", CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "domain"},
		}},
		Ingress:  &corev1beta1.Ingress{Domain: "ingress.seed.example.org", Controller: corev1beta1.IngressController{Kind: "nginx"}},
		Networks: corev1beta1.SeedNetworks{Nodes: new("10.1.0.0/16"), Pods: "10.2.0.0/16", Services: "10.3.0.0/16"},
		Provider: corev1beta1.SeedProvider{Type: "local", Region: "here", Zones: []string{"a", "b"}},
		Settings: &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{}},
	}
}

func given(t *testing.T, shootName string, spec corev1beta1.SeedSpec) *seedmanagementv1alpha1.ManagedSeed {
	t.Helper()
	config := &gardenletconfigv1alpha1.GardenletConfiguration{SeedConfig: &gardenletconfigv1alpha1.SeedConfig{}}
	config.SetGroupVersionKind(gardenletconfigv1alpha1.SchemeGroupVersion.WithKind("GardenletConfiguration"))
	config.SeedConfig.Spec = spec
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	m := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "managed"}}
	m.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: shootName}
	m.Spec.Gardenlet.Config = &runtime.RawExtension{Raw: raw}
	return m
}

func plugin(t *testing.T) *managedseed.Plugin {
	going := shoot("going", nil)
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"gardener"}
	reader := admissiontest.Reader(t,
		shoot("fit", nil), shoot("taken", nil), going,
		shoot("plain", func(s *corev1beta1.ShootSpec) { s.DNS = nil }),
		shoot("ingress", func(s *corev1beta1.ShootSpec) {
			s.Addons = &corev1beta1.Addons{NginxIngress: &corev1beta1.NginxIngress{Addon: corev1beta1.Addon{Enabled: true}}}
		}),
		shoot("fixed", func(s *corev1beta1.ShootSpec) { s.Kubernetes.VerticalPodAutoscaler = nil }),
		shoot("workerless", func(s *corev1beta1.ShootSpec) { s.Provider.Workers = nil }),
		&seedmanagementv1alpha1.ManagedSeed{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "other"},
			Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "taken"}},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "domain", Labels: map[string]string{"gardener.cloud/role": "default-domain"},
			Annotations: map[string]string{"dns.gardener.cloud/domain": "example.org", "dns.gardener.cloud/provider": "dns"},
		}},
	)
	p := managedseed.New()
	p.GardenCache = reader
	p.KubeAPI = reader
	return p
}

func TestAdmit(t *testing.T) {
	for name, tc := range map[string]struct {
		given, want corev1beta1.SeedSpec
	}{
		"everything is left open": {given: corev1beta1.SeedSpec{Backup: &corev1beta1.Backup{}}, want: complete()},
		"nothing is left open":    {given: complete(), want: complete()},
	} {
		t.Run(name, func(t *testing.T) {
			obj := given(t, "fit", tc.given)
			if err := plugin(t).Admit(t.Context(), admissiontest.Request{Object: obj}.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			config := &gardenletconfigv1alpha1.GardenletConfiguration{}
			if err := json.Unmarshal(obj.Spec.Gardenlet.Config.Raw, config); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, config.SeedConfig.Spec); diff != "" {
				t.Errorf("spec of the seed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"name.seed.gardener.cloud/parent": "true"}, obj.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("what is left to validation", func(t *testing.T) {
		for _, raw := range []string{"", "{", `{"kind":"Other"}`, `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration"}`} {
			obj := given(t, "fit", corev1beta1.SeedSpec{})
			obj.Spec.Gardenlet.Config.Raw = []byte(raw)
			if err := plugin(t).Admit(t.Context(), admissiontest.Request{Object: obj}.Attributes(), nil); err != nil || string(obj.Spec.Gardenlet.Config.Raw) != raw {
				t.Errorf("Admit() = %v and makes %s of %s", err, obj.Spec.Gardenlet.Config.Raw, raw)
			}
		}
	})
	t.Run("Shoot without a domain", func(t *testing.T) {
		err := plugin(t).Admit(t.Context(), admissiontest.Request{Object: given(t, "plain", corev1beta1.SeedSpec{})}.Attributes(), nil)
		if admissiontest.Reason(err) != metav1.StatusReasonInvalid || !strings.Contains(err.Error(), "spec.shoot.name: ") {
			t.Errorf("Admit() = %v, want an error at spec.shoot.name", err)
		}
	})
	t.Run("no such Shoot", func(t *testing.T) {
		err := plugin(t).Admit(t.Context(), admissiontest.Request{Object: given(t, "x", complete())}.Attributes(), nil)
		if admissiontest.Reason(err) != metav1.StatusReasonInvalid {
			t.Errorf("Admit() = %v, want it invalid", err)
		}
	})
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		shoot  string
		change func(*corev1beta1.SeedSpec)
		update bool
		path   string // of the error, if there is one
	}{
		"fits":                   {},
		"zones are fewer":        {change: func(s *corev1beta1.SeedSpec) { s.Provider.Zones = []string{"a"} }},
		"zones are others":       {change: func(s *corev1beta1.SeedSpec) { s.Provider.Zones = []string{"c"} }, path: "provider.zones"},
		"provider is another":    {change: func(s *corev1beta1.SeedSpec) { s.Provider.Type = "x" }, path: "provider.type"},
		"region is another":      {change: func(s *corev1beta1.SeedSpec) { s.Provider.Region = "x" }, path: "provider.region"},
		"nodes are others":       {change: func(s *corev1beta1.SeedSpec) { s.Networks.Nodes = new("10.9.0.0/16") }, path: "networks.nodes"},
		"pods are others":        {change: func(s *corev1beta1.SeedSpec) { s.Networks.Pods = "10.9.0.0/16" }, path: "networks.pods"},
		"services are others":    {change: func(s *corev1beta1.SeedSpec) { s.Networks.Services = "10.9.0.0/16" }, path: "networks.services"},
		"domain is another":      {change: func(s *corev1beta1.SeedSpec) { s.Ingress.Domain = "x" }, path: "ingress.domain"},
		"autoscaling twice":      {change: func(s *corev1beta1.SeedSpec) { s.Settings.VerticalPodAutoscaler.Enabled = true }, path: "verticalPodAutoscaler.enabled"},
		"Shoot is a Seed":        {shoot: "taken", path: "spec.shoot.name"},
		"Shoot without a domain": {shoot: "plain", path: "spec.shoot.name"},
		"Shoot with an ingress":  {shoot: "ingress", path: "spec.shoot.name"},
		"Shoot without scaling":  {shoot: "fixed", path: "spec.shoot.name"},
		"Shoot without workers":  {shoot: "workerless", path: "spec.shoot.name"},
		"Shoot in deletion":      {shoot: "going", path: "spec.shoot.name"},
		"Shoot is deleted later": {shoot: "going", update: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec, name := complete(), tc.shoot
			if tc.change != nil {
				tc.change(&spec)
			}
			if name == "" {
				name = "fit"
			}
			request := admissiontest.Request{Object: given(t, name, spec)}
			if tc.update {
				request.Old = given(t, name, spec)
			}
			err := plugin(t).Validate(t.Context(), request.Attributes(), nil)
			if tc.path == "" && err != nil || tc.path != "" && (admissiontest.Reason(err) != metav1.StatusReasonInvalid || !strings.Contains(err.Error(), tc.path+": ")) {
				t.Errorf("Validate() = %v, want an error at %q", err, tc.path)
			}
		})
	}
}
