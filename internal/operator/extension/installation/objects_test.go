package installation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/validation/core"
	operatorvalidation "gardener.cloud/gardener/internal/validation/operator"
	"gardener.cloud/gardener/test/golden"
)

// referring adds what an Extension can refer to.
func referring(e *operatorv1alpha1.Extension) {
	repository := e.Spec.Deployment.Extension.Helm.OCIRepository
	repository.PullSecretRef, repository.CABundleSecretRef = &corev1.LocalObjectReference{Name: "pull"}, &corev1.LocalObjectReference{Name: "ca"}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		e.Spec.Deployment.Resources = append(e.Spec.Deployment.Resources, gardencorev1.NamedResourceReference{
			Name: kind, ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: "pull"},
		})
	}
}

func TestObjects(t *testing.T) {
	for file, e := range map[string]*operatorv1alpha1.Extension{
		"full.yaml": full(referring, func(e *operatorv1alpha1.Extension) {
			always := corev1beta1.ControllerDeploymentPolicyAlways
			e.Annotations = map[string]string{"security.gardener.cloud/pod-security-enforce": "baseline"}
			e.Spec.Resources = append(e.Spec.Resources, corev1beta1.ControllerResource{
				Kind: "Extension", Type: "y", AutoEnable: []corev1beta1.ClusterType{"garden", "shoot"}, ClusterCompatibility: []corev1beta1.ClusterType{"shoot", "garden"},
			})
			e.Spec.Deployment.Extension.Policy = &always
			e.Spec.Deployment.Extension.SeedSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			e.Spec.Deployment.Extension.Values = &apiextensionsv1.JSON{Raw: []byte(`{"a":"{{ .resources.Secret.data.a }}"}`)}
		}),
		"minimal.yaml": full(func(e *operatorv1alpha1.Extension) {
			e.Spec.Resources[0].Kind, e.Spec.Deployment = "Network", nil
		}),
	} {
		t.Run(file, func(t *testing.T) {
			objects := append(registration(e), runtimeNamespace(e, []string{"a", "b"}), virtualNamespace(e), accessSecret(e))
			for _, s := range copied(e) {
				objects = append(objects, &corev1.Secret{ObjectMeta: copyMeta(e, s)})
			}
			golden.Objects(t, file, objects, gardencorev1.AddToScheme, corev1beta1.AddToScheme)
		})
	}
}

func TestInjectGardenKubeconfig(t *testing.T) {
	for name, tc := range map[string]struct {
		kind      string
		specified *bool
		want      *bool
	}{
		"by default":                   {kind: "Network"},
		"with workers":                 {kind: "Worker", want: new(true)},
		"with workers, but turned off": {kind: "Worker", specified: new(false), want: new(false)},
		"turned on":                    {kind: "Network", specified: new(true), want: new(true)},
	} {
		t.Run(name, func(t *testing.T) {
			e := full(func(e *operatorv1alpha1.Extension) {
				e.Spec.Resources[0].Kind, e.Spec.Deployment.Extension.InjectGardenKubeconfig = tc.kind, tc.specified
			})
			if diff := cmp.Diff(tc.want, registration(e)[0].(*gardencorev1.ControllerDeployment).InjectGardenKubeconfig); diff != "" {
				t.Errorf("injectGardenKubeconfig (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValues(t *testing.T) {
	reader := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "pull"}, Data: map[string][]byte{"k": []byte("5ecret")},
	}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "pull"}}).Build()
	e := full(referring)
	data, err := chart.ReadResources(t.Context(), reader, e.Spec.Deployment.Resources)
	if err != nil {
		t.Fatal(err)
	}
	runtimeCluster := map[string]any{"enabled": "true", "priorityClassName": "gardener-garden-system-200"}
	for name, tc := range map[string]struct {
		raw  string
		own  map[string]any
		want map[string]any // nil for an error
	}{
		"none": {own: runtimeValues(), want: map[string]any{"gardener": map[string]any{"runtimeCluster": runtimeCluster}}},
		"null": {raw: "null", own: runtimeValues(), want: map[string]any{"gardener": map[string]any{"runtimeCluster": runtimeCluster}}},
		"those of the operator win": {
			raw: `{"gardener":{"runtimeCluster":{"enabled":"no","more":1}}}`, own: runtimeValues(),
			want: map[string]any{"gardener": map[string]any{"runtimeCluster": map[string]any{
				"enabled": "true", "priorityClassName": "gardener-garden-system-200", "more": float64(1),
			}}},
		},
		"placeholders": {raw: `{"a":["x-{{ .resources.Secret.data.k }}"]}`, own: map[string]any{}, want: map[string]any{"a": []any{"x-5ecret"}, "gardener": map[string]any{}}},
		"admission in the virtual garden": {own: admissionVirtualValues(e), want: map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{
			"enabled": true, "serviceAccount": map[string]any{"name": "extension-admission-x", "namespace": "kube-system"},
		}}}},
		"admission in the runtime cluster": {own: admissionRuntimeValues(e), want: map[string]any{"gardener": map[string]any{
			"runtimeCluster": map[string]any{"priorityClassName": "gardener-garden-system-400"},
			"virtualCluster": map[string]any{"enabled": true, "namespace": "extension-x"},
		}}},
		"an unknown key": {raw: `{"a":"{{ .resources.Secret.data.other }}"}`},
		"no object":      {raw: `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			var raw *apiextensionsv1.JSON
			if tc.raw != "" {
				raw = &apiextensionsv1.JSON{Raw: []byte(tc.raw)}
			}
			got, err := values(raw, data, tc.own)
			if (err == nil) != (tc.want != nil) {
				t.Fatalf("values() returned error %v", err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInjectKubeconfig(t *testing.T) {
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "i"}},
		Containers:     []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "kubeconfig", MountPath: "/other"}, {Name: "a", MountPath: "/a"}}}},
		Volumes:        []corev1.Volume{{Name: "kubeconfig"}, {Name: "a"}},
	}
	injectKubeconfig(spec, "generic-token-kubeconfig-1", full())
	mount := corev1.VolumeMount{Name: "kubeconfig", MountPath: "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig", ReadOnly: true}
	want := [][]corev1.VolumeMount{{mount}, {{Name: "a", MountPath: "/a"}, mount}}
	if diff := cmp.Diff(want, [][]corev1.VolumeMount{spec.InitContainers[0].VolumeMounts, spec.Containers[0].VolumeMounts}); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if len(spec.Volumes) != 2 || spec.Volumes[0].Name != "a" {
		t.Fatalf("volumes are %v", spec.Volumes)
	}
	var names []string
	for _, source := range spec.Volumes[1].Projected.Sources {
		names = append(names, source.Secret.Name)
	}
	if diff := cmp.Diff([]string{"generic-token-kubeconfig-1", "shoot-access-extension-admission-x"}, names); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
}

func TestVirtualVersion(t *testing.T) {
	garden := &operatorv1alpha1.Garden{}
	garden.Spec.VirtualCluster.Kubernetes.Version = "1.35.2"
	got, err := virtualVersion(garden)
	if err != nil || got.Major != "1" || got.Minor != "35" || got.GitVersion != "v1.35.2" {
		t.Errorf("virtualVersion() = %v, %v", got, err)
	}
	garden.Spec.VirtualCluster.Kubernetes.Version = "x"
	if _, err := virtualVersion(garden); err == nil {
		t.Error("virtualVersion() accepts a version that is none")
	}
}

// What gardener-apiserver refuses of a registration would never be applied, so that the Extension is refused at once.
func TestRegistrationIsValid(t *testing.T) {
	spec := func(change func(*operatorv1alpha1.ExtensionSpec)) func(*operatorv1alpha1.Extension) {
		return func(e *operatorv1alpha1.Extension) { change(&e.Spec) }
	}
	for name, tc := range map[string]struct {
		change  func(*operatorv1alpha1.Extension)
		refused bool
	}{
		"all":               {change: referring},
		"the longest name":  {change: func(e *operatorv1alpha1.Extension) { e.Name = strings.Repeat("a", 45) }},
		"a name with a dot": {change: func(e *operatorv1alpha1.Extension) { e.Name = "a.b" }, refused: true},
		"a seed selector": {change: spec(func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Extension.SeedSelector = &metav1.LabelSelector{}
			s.Resources[0].Primary = new(false)
		})},
		"a seed selector with a primary resource": {change: spec(func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Extension.SeedSelector = &metav1.LabelSelector{}
		}), refused: true},
		"a seed selector and a primary resource of the garden alone": {change: spec(func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Extension.SeedSelector = &metav1.LabelSelector{}
			s.Resources = []corev1beta1.ControllerResource{{Kind: "Extension", Type: "x", ClusterCompatibility: []corev1beta1.ClusterType{"garden"}}}
		})},
		"a resource with a dash": {change: spec(func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Resources = []gardencorev1.NamedResourceReference{{
				Name: "a-b", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"},
			}}
		}), refused: true},
		"a placeholder for what is no resource": {change: spec(func(s *operatorv1alpha1.ExtensionSpec) {
			s.Deployment.Extension.Values = &apiextensionsv1.JSON{Raw: []byte(`{"a":"{{ .resources.b.data.c }}"}`)}
		}), refused: true},
		"a resource that is enabled for seeds and gardens": {change: spec(func(s *operatorv1alpha1.ExtensionSpec) {
			clusters := []corev1beta1.ClusterType{"garden", "seed"}
			s.Resources = []corev1beta1.ControllerResource{{Kind: "Extension", Type: "x", ClusterCompatibility: clusters, AutoEnable: clusters}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			e := full(tc.change)
			var errs field.ErrorList
			for _, object := range registration(e) {
				switch object := object.(type) {
				case *gardencorev1.ControllerDeployment:
					errs = append(errs, core.ValidateControllerDeployment(object)...)
				case *corev1beta1.ControllerRegistration:
					errs = append(errs, core.ValidateControllerRegistration(object)...)
				}
			}
			if got := len(errs) > 0; got != tc.refused {
				t.Errorf("gardener-apiserver refuses: %v, want %v: %v", got, tc.refused, errs)
			}
			if errs := operatorvalidation.ValidateExtension(e); len(errs) > 0 != tc.refused {
				t.Errorf("the Extension is refused: %v, want %v: %v", len(errs) > 0, tc.refused, errs)
			}
		})
	}
}
