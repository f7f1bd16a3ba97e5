package installation

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/chart/charttest"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

type seedVersion struct {
	discovery.ServerVersionInterface
}

func (seedVersion) ServerVersion() (*version.Info, error) {
	return &version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.1"}, nil
}

// TestRender renders charts with one template each, and compares the pods or reads the error.
func TestRender(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: extension-x-1}\nspec: {containers: [{name: a}]}"
	seedName := map[string]any{"name": "SEED_NAME", "value": "s"}
	for name, tc := range map[string]struct {
		inject   bool
		template string
		want     map[string]any // the spec of the pods
		err      string
	}{
		"pods": {template: pod, want: map[string]any{
			"containers": []any{map[string]any{"name": "a", "resources": map[string]any{}, "env": []any{seedName}}},
		}},
		"SEED_NAME that the chart sets": {
			template: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, env: [{name: SEED_NAME, value: other}]}]}",
			want: map[string]any{"containers": []any{map[string]any{
				"name": "a", "resources": map[string]any{}, "env": []any{map[string]any{"name": "SEED_NAME", "value": "other"}},
			}}},
		},
		"access to the garden": {inject: true, template: pod, want: map[string]any{
			"containers": []any{map[string]any{
				"name": "a", "resources": map[string]any{},
				"env": []any{map[string]any{
					"name": "GARDEN_KUBECONFIG", "value": "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig/kubeconfig",
				}, seedName},
				"volumeMounts": []any{map[string]any{
					"name": "garden-kubeconfig", "mountPath": "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig", "readOnly": true,
				}},
			}},
			"volumes": []any{map[string]any{"name": "garden-kubeconfig", "projected": map[string]any{"sources": []any{
				map[string]any{"secret": map[string]any{
					"name": "generic-garden-kubeconfig-6e340b9c", "items": []any{map[string]any{"key": "kubeconfig", "path": "kubeconfig"}}, "optional": false,
				}},
				map[string]any{"secret": map[string]any{
					"name": "garden-access-extension", "items": []any{map[string]any{"key": "token", "path": "token"}}, "optional": false,
				}},
			}}}},
		}},
		"access that a label forbids": {
			inject: true,
			template: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: extension-x-1, labels: {extensions.gardener.cloud/inject-garden-kubeconfig: \"false\"}}\n" +
				"spec: {template: {spec: {containers: [{name: a}]}}}",
			want: map[string]any{"containers": []any{map[string]any{"name": "a", "resources": map[string]any{}, "env": []any{seedName}}}},
		},
		"pods in another namespace, which has no Secrets for the access": {
			inject: true, template: "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: garden}\nspec: {containers: [{name: a}]}",
			want: map[string]any{"containers": []any{map[string]any{"name": "a", "resources": map[string]any{}, "env": []any{seedName}}}},
		},
		"access of its own, in a CronJob": {
			inject: true,
			template: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a, namespace: extension-x-1}\n" +
				"spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, env: [{name: GARDEN_KUBECONFIG, value: own}]}]}}}}}",
			want: map[string]any{
				"containers": []any{map[string]any{
					"name": "a", "resources": map[string]any{}, "env": []any{map[string]any{"name": "GARDEN_KUBECONFIG", "value": "own"}, seedName},
				}},
				"volumes": []any{map[string]any{"name": "garden-kubeconfig", "projected": map[string]any{"sources": []any{
					map[string]any{"secret": map[string]any{
						"name": "generic-garden-kubeconfig-6e340b9c", "items": []any{map[string]any{"key": "kubeconfig", "path": "kubeconfig"}}, "optional": false,
					}},
					map[string]any{"secret": map[string]any{
						"name": "garden-access-extension", "items": []any{map[string]any{"key": "token", "path": "token"}}, "optional": false,
					}},
				}}}},
			},
		},
		"another kind":            {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a}]}}}"},
		"a workload without pods": {template: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}"},
		"an invalid pod spec":     {template: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: 3}", err: "not valid"},
		"a template that fails": {
			template: "{{ fail .Values.password }}", err: `not valid: render chart "x", x/templates/a.yaml:1:3: the error is not shown, as values of the chart are data of Secrets`,
		},
		"no YAML": {template: "a: {{ .Values.password }}: b", err: "not valid: x/templates/a.yaml is not valid YAML: the error is not shown"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := deploymentWith(t, tc.template)
			deployment.InjectGardenKubeconfig = &tc.inject
			objects, err := render(t, deployment)
			if !matches(err, tc.err) {
				t.Fatalf("render() returned error %v, want %q", err, tc.err)
			}
			if err != nil {
				return
			}
			path := chart.PodSpecPath(objects[0].GetKind())
			if path == nil {
				if diff := cmp.Diff(parse(t, tc.template).Object, objects[0].Object); diff != "" {
					t.Errorf("the object was changed (-want +got):\n%s", diff)
				}
				return
			}
			got, _, err := unstructured.NestedMap(objects[0].Object, path...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever a template does to the data of a Secret, an error does not show it to those who may read ControllerInstallations.
func TestErrorsDoNotShowSecrets(t *testing.T) {
	for _, expression := range []string{
		".Values.password", ".Values.password | b64enc", ".Values.password | quote", ".Values.password | toJson | b64enc | b32enc",
		".Values.password | upper", ".Values.password | reverse", `regexReplaceAll "(.)" .Values.password "$1 "`, ".Values.password | trunc 5",
	} {
		for _, template := range []string{"{{ fail (%) }}", "a: {{ % }}: {", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: {{ % | quote }}}"} {
			template = strings.ReplaceAll(template, "%", expression)
			_, err := render(t, deploymentWith(t, template))
			if err == nil {
				t.Errorf("%s: no error", template)
				continue
			}
			for _, value := range []string{"5ecret", "NWVjcmV0", "5ECRET", "terce5", "5 e c", "5ecre"} {
				if strings.Contains(err.Error(), value) {
					t.Errorf("%s: %v", template, err)
				}
			}
		}
	}
}

func TestResources(t *testing.T) {
	const template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {{ .Values.nested | toJson }}"
	for name, tc := range map[string]struct {
		values, err string
		want        map[string]any
	}{
		"data of a Secret and of a ConfigMap": {
			values: `{"nested":{"a":"{{ .resources.secret.data.password }}","b":"url: {{.resources.config.data.url}}/{{ .resources.config.data.path.txt }}"}}`,
			want:   map[string]any{"a": "5ecret", "b": "url: https://example.com/{{ .a }}"},
		},
		"a missing key":      {values: `{"nested":{"a":"{{ .resources.secret.data.user }}"}}`, err: `resource "secret" has no key "user"`},
		"a missing resource": {values: `{"nested":{"a":["{{ .resources.other.data.user }}"]}}`, err: `there is no resource "other"`},
		"a template":         {values: `{"nested":{"a":"{{ .resources.secret }}"}}`, err: "placeholders must look like"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := deploymentWith(t, template)
			deployment.Helm.Values = &apiextensionsv1.JSON{Raw: []byte(tc.values)}
			objects, err := render(t, deployment)
			if !matches(err, tc.err) {
				t.Fatalf("render() returned error %v, want %q", err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, objects[0].Object["data"]); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a missing Secret", func(t *testing.T) {
		deployment := deploymentWith(t, template)
		deployment.Resources[0].ResourceRef.Name = "missing"
		if _, err := render(t, deployment); !matches(err, `read Secret "garden/missing" for resource "secret": not found`) {
			t.Errorf("render() returned error %v", err)
		}
	})
}

func TestValues(t *testing.T) {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": `{"x":{}} {{ .resources.r.data.k }}`}}}
	seed.Spec.Provider = corev1beta1.SeedProvider{Type: "local", Region: "r"}
	seed.Spec.Networks.BlockCIDRs = []string{"10.0.0.0/8"}
	seed.Spec.Volume = &corev1beta1.SeedVolume{Providers: []corev1beta1.SeedVolumeProvider{{Purpose: "etcd", Name: "csi"}}}
	deployment := &gardencorev1.ControllerDeployment{Helm: &gardencorev1.HelmControllerDeployment{Values: &apiextensionsv1.JSON{
		Raw: []byte(`{"a":1,"gardener":{"version":"own","more":true,"seed":{"name":"own","more":true}}}`),
	}}}
	r := &reconciler{Values: Values{Version: "1.2.3", FeatureGates: map[string]bool{"Foo": true}, GardenConfig: &rest.Config{}}}
	for name, tc := range map[string]struct {
		inject  bool
		ingress *corev1beta1.Ingress
		garden  map[string]any
		more    map[string]any
	}{
		"without access to the garden and ingress": {garden: map[string]any{"clusterIdentity": "g"}},
		"with access and ingress": {
			inject: true, ingress: &corev1beta1.Ingress{Domain: "d"}, more: map[string]any{"ingressDomain": "d"},
			garden: map[string]any{"clusterIdentity": "g", "genericKubeconfigSecretName": "generic-garden-kubeconfig-6e340b9c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment.InjectGardenKubeconfig, seed.Spec.Ingress = &tc.inject, tc.ingress
			got, err := r.values(deployment, &chart.Resources{}, seed, "g")
			if err != nil {
				t.Fatal(err)
			}
			gardener, _ := got["gardener"].(map[string]any)
			inSeed, _ := gardener["seed"].(map[string]any)
			if spec, _ := inSeed["spec"].(map[string]any); spec["provider"] == nil {
				t.Errorf("gardener.seed.spec is %v", inSeed["spec"])
			}
			delete(inSeed, "spec")
			wantSeed := map[string]any{
				"name": "s", "clusterIdentity": "", "labels": map[string]any{"l": "1"}, "annotations": map[string]any{"a": `{"x":{}} {{ .resources.r.data.k }}`},
				"provider": "local", "region": "r", "protected": false, "visible": true, "taints": nil, "more": true,
				"volumeProvider": "csi", "volumeProviders": []any{map[string]any{"name": "csi", "purpose": "etcd"}},
				"networks":   map[string]any{"pods": "", "services": "", "blockCIDRs": []any{"10.0.0.0/8"}},
				"blockCIDRs": []any{"10.0.0.0/8"},
			}
			maps.Copy(wantSeed, tc.more)
			want := map[string]any{"a": float64(1), "gardener": map[string]any{
				"version": "1.2.3", "more": true, "garden": tc.garden, "gardenlet": map[string]any{"featureGates": map[string]any{"Foo": true}}, "seed": wantSeed,
			}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("values() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamespace(t *testing.T) {
	ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{
		Name: "x-1", Annotations: map[string]string{"security.gardener.cloud/pod-security-enforce": "baseline"},
	}}
	ci.Spec.RegistrationRef.Name = "x"
	want := metav1.ObjectMeta{
		Name: "extension-x-1",
		Labels: map[string]string{
			"gardener.cloud/role": "extension", "controllerregistration.core.gardener.cloud/name": "x",
			"high-availability-config.resources.gardener.cloud/consider": "true", "pod-security.kubernetes.io/enforce": "baseline",
		},
		Annotations: map[string]string{"high-availability-config.resources.gardener.cloud/zones": "a,b"},
	}
	if diff := cmp.Diff(want, namespace(ci, []string{"a", "b"}).ObjectMeta); diff != "" {
		t.Errorf("namespace() (-want +got):\n%s", diff)
	}
	ci.Annotations = nil
	delete(want.Labels, "pod-security.kubernetes.io/enforce")
	if diff := cmp.Diff(want, namespace(ci, []string{"a", "b"}).ObjectMeta); diff != "" {
		t.Errorf("namespace() without a level (-want +got):\n%s", diff)
	}
}

// deploymentWith has a chart with one template, and two resources.
func deploymentWith(t *testing.T, template string) *gardencorev1.ControllerDeployment {
	t.Helper()
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Helm: &gardencorev1.HelmControllerDeployment{
		RawChart: charttest.Pack(t, "Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\n", "templates/a.yaml", template),
		Values:   &apiextensionsv1.JSON{Raw: []byte(`{"password":"{{ .resources.secret.data.password }}"}`)},
	}}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		resource := gardencorev1.NamedResourceReference{Name: map[string]string{"Secret": "secret", "ConfigMap": "config"}[kind]}
		resource.ResourceRef.Kind, resource.ResourceRef.APIVersion, resource.ResourceRef.Name = kind, "v1", "ref"
		deployment.Resources = append(deployment.Resources, resource)
	}
	return deployment
}

// render renders a chart for an installation in a seed with fake clusters.
func render(t *testing.T, deployment *gardencorev1.ControllerDeployment) ([]*unstructured.Unstructured, error) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "garden", Name: "ref"}
	garden := fake.NewClientBuilder().WithObjects(
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("5ecret")}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"url": "https://example.com", "path.txt": "{{ .a }}"}},
	).Build()
	r := &reconciler{Values: Values{SeedName: "s", GardenAPI: garden, GardenConfig: &rest.Config{}, SeedVersion: seedVersion{}}}
	ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "x-1"}}
	ci.Spec.RegistrationRef.Name = "x"
	return r.render(t.Context(), ci, deployment, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
}

// matches says whether an error has a text. An empty text means no error.
func matches(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}
