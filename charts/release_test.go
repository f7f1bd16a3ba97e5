package charts_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/configfile"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/pkg/helm"
	"gardener.cloud/gardener/test/golden"
)

// template renders a chart for the namespace garden, and decodes its objects strictly. Values are YAML.
func template(t *testing.T, name, values string) []client.Object {
	t.Helper()
	objects, err := tryTemplate(t, name, values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func tryTemplate(t *testing.T, name, values string) ([]client.Object, error) {
	t.Helper()
	release := helm.Release{Name: "gardener", Namespace: "garden", Kubernetes: version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}}
	if err := yaml.Unmarshal([]byte(values), &release.Values); err != nil {
		t.Fatal(err)
	}
	archive, err := charts.Archive(name)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := helm.Render(archive, release)
	if err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme(t), serializer.EnableStrict).UniversalDeserializer()
	var objects []client.Object
	for _, object := range rendered {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		decoded, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			t.Fatalf("%s %q: %v", object.GetKind(), object.GetName(), err)
		}
		objects = append(objects, decoded.(client.Object))
	}
	return objects, nil
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// find returns the object of a type and name.
func find[T client.Object](t *testing.T, objects []client.Object, name string) T {
	t.Helper()
	for _, object := range objects {
		if typed, ok := object.(T); ok && object.GetName() == name {
			return typed
		}
	}
	var none T
	t.Fatalf("the chart has no %T %q", none, name)
	return none
}

func TestLint(t *testing.T) {
	for name, tc := range map[string]struct{ chart, values string }{
		"operator":                  {charts.Operator, ""},
		"operator with all values":  {charts.Operator, allOperatorValues},
		"gardenlet":                 {charts.Gardenlet, "config: {seedConfig: {metadata: {name: local}}}"},
		"gardenlet with all values": {charts.Gardenlet, allGardenletValues},
		"provider-hosts":            {charts.ProviderHosts, "{image: registry.example/gardener:v1, gardener: {seed: {name: local}}}"},
		"provider-hosts for a garden": {
			charts.ProviderHosts, "{image: registry.example/gardener:v1, gardener: {runtimeCluster: {enabled: true, priorityClassName: gardener-garden-system-200}}}",
		},
		"provider-local": {charts.ProviderLocal, "{image: registry.example/gardener:v1, gardener: {seed: {name: local}}}"},
		"provider-local for a garden": {
			charts.ProviderLocal, "{image: registry.example/gardener:v1, gardener: {runtimeCluster: {enabled: true, priorityClassName: gardener-garden-system-200}}}",
		},
		"admission of provider-local": {
			charts.ProviderLocalAdmissionRuntime, "{image: registry.example/gardener:v1, gardener: {runtimeCluster: {priorityClassName: gardener-garden-system-400}, virtualCluster: {namespace: extension-provider-local}}}",
		},
		"admission of provider-local in the garden": {
			charts.ProviderLocalAdmissionApplication, "{gardener: {virtualCluster: {serviceAccount: {name: extension-admission-provider-local, namespace: kube-system}}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(tc.values), &values); err != nil {
				t.Fatal(err)
			}
			for _, message := range lint.All(tc.chart, values, "garden", true).Messages {
				if message.Severity > support.InfoSev {
					t.Errorf("%s: %v", message.Path, message.Err)
				}
			}
		})
	}
}

// allOperatorValues set everything that the chart of the operator has.
const allOperatorValues = `
replicaCount: 3
revisionHistoryLimit: 4
image: {repository: registry.example/gardener, tag: sha256:0123, pullPolicy: Always}
resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}
podLabels: {team: a}
podAnnotations: {note: b}
env: [{name: HTTPS_PROXY, value: http://proxy}]
hostAliases: [{ip: 10.2.0.1, hostnames: [api.garden.example]}]
tolerations: [{key: garden, operator: Exists}]
dnsConfig: {options: [{name: ndots, value: "2"}]}
additionalVolumes: [{name: more, emptyDir: {}}]
additionalVolumeMounts: [{name: more, mountPath: /more}]
imageVectorOverwrite: |
  images:
  - name: etcd
    ref: registry.example/etcd:v1
componentImageVectorOverwrites: |
  components:
  - name: etcd-druid
    imageVectorOverwrite: |
      images: []
chartsImageVectorOverwrite: |
  images:
  - name: gardenlet
    ref: registry.example/charts/gardenlet:v1
config:
  logLevel: debug
  logFormat: text
  server: {webhooks: {port: 1}, healthProbes: {port: 2}, metrics: {port: 3}}
  leaderElection: {leaseDuration: 30s}
  debugging: {enableProfiling: true}
  featureGates: {DefaultSeccompProfile: true}
  controllers:
    garden:
      etcdConfig: {backupCompactionController: {enableBackupCompaction: false, eventsThreshold: 1000000}}
    extensionCare: {syncPeriod: 2m, conditionThresholds: [{type: RuntimeHealthy, duration: 1m}]}
    extensionReference: {concurrentSyncs: 7}
`

func TestOperator(t *testing.T) {
	for name, values := range map[string]string{"default": "", "all": allOperatorValues} {
		t.Run(name, func(t *testing.T) {
			objects := slices.DeleteFunc(template(t, charts.Operator, values), func(object client.Object) bool {
				_, is := object.(*apiextensionsv1.CustomResourceDefinition)
				return is
			})
			golden.Objects(t, "operator-"+name+".yaml", objects)
			operatorConfig(t, objects)
		})
	}
}

// operatorConfig decodes the configuration of the gardener-operator.
func operatorConfig(t *testing.T, objects []client.Object) *operatorconfigv1alpha1.OperatorConfiguration {
	t.Helper()
	kind := configfile.Kind[operatorconfigv1alpha1.OperatorConfiguration]{
		AddToScheme: operatorconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateOperator,
	}
	config, err := kind.Decode([]byte(find[*corev1.ConfigMap](t, objects, "gardener-operator").Data["config.yaml"]))
	if err != nil {
		t.Fatalf("the configuration of gardener-operator is invalid: %v", err)
	}
	return config
}

// Every setting arrives, also those of controllers that the chart has no defaults for.
func TestOperatorConfiguration(t *testing.T) {
	config := operatorConfig(t, template(t, charts.Operator, allOperatorValues))
	if got := config.Controllers.ExtensionCare; got.SyncPeriod.Minutes() != 2 || len(got.ConditionThresholds) != 1 {
		t.Errorf("extensionCare is %+v", got)
	}
	if got := *config.Controllers.ExtensionReference.ConcurrentSyncs; got != 7 {
		t.Errorf("extensionReference has %d workers", got)
	}
	if got := *config.Controllers.Garden.ETCDConfig.BackupCompactionController.EventsThreshold; got != 1000000 {
		t.Errorf("eventsThreshold is %d", got)
	}
	if got := *config.NodeToleration.DefaultNotReadyTolerationSeconds; got != 60 {
		t.Errorf("pods tolerate nodes that are not ready for %d seconds", got)
	}
}

// The definitions of kinds are those of the release, and stay when the chart is uninstalled.
func TestOperatorDefinitions(t *testing.T) {
	want, err := crds.Operator()
	if err != nil {
		t.Fatal(err)
	}
	objects := template(t, charts.Operator, "")
	for _, definition := range want {
		got := find[*apiextensionsv1.CustomResourceDefinition](t, objects, definition.Name)
		if got.Labels["gardener.cloud/deletion-protected"] != "true" {
			t.Errorf("%s has labels %v", got.Name, got.Labels)
		}
		metav1.SetMetaDataAnnotation(&definition.ObjectMeta, "helm.sh/resource-policy", "keep")
		if diff := cmp.Diff(definition, got); diff != "" {
			t.Errorf("%s differs; run make generate (-want +got):\n%s", got.Name, diff)
		}
	}
}

// A pod is restarted when a file that it reads has changed, and not otherwise.
func TestChecksums(t *testing.T) {
	for name, tc := range map[string]struct{ chart, values, annotation string }{
		"configuration of the operator":   {charts.Operator, "config: {logLevel: debug}", "checksum/configuration"},
		"images of the operator":          {charts.Operator, "imageVectorOverwrite: 'images: []'", "checksum/imagevector-overwrite-images"},
		"components of the operator":      {charts.Operator, "componentImageVectorOverwrites: 'components: []'", "checksum/imagevector-overwrite-components"},
		"charts of the operator":          {charts.Operator, "chartsImageVectorOverwrite: 'images: []'", "checksum/imagevector-overwrite-charts"},
		"configuration of the gardenlet":  {charts.Gardenlet, "config: {logLevel: debug}", "checksum/configuration"},
		"images of the gardenlet":         {charts.Gardenlet, "imageVectorOverwrite: 'images: []'", "checksum/imagevector-overwrite"},
		"components of the gardenlet":     {charts.Gardenlet, "componentImageVectorOverwrites: 'components: []'", "checksum/imagevector-overwrite-components"},
		"nothing that the operator reads": {charts.Operator, "replicaCount: 2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := map[string]string{charts.Operator: "gardener-operator", charts.Gardenlet: "gardenlet"}[tc.chart]
			before := find[*appsv1.Deployment](t, template(t, tc.chart, ""), deployment).Spec.Template.Annotations
			after := find[*appsv1.Deployment](t, template(t, tc.chart, tc.values), deployment).Spec.Template.Annotations
			if tc.annotation == "" {
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("annotations differ:\n%s", diff)
				}
			} else if after[tc.annotation] == "" || after[tc.annotation] == before[tc.annotation] {
				t.Errorf("annotation %s is %q, and was %q", tc.annotation, after[tc.annotation], before[tc.annotation])
			}
		})
	}
}

// A misspelt setting is found before anything is deployed.
func TestRefusedValues(t *testing.T) {
	for name, tc := range map[string]struct{ chart, values, want string }{
		"an unknown value":                 {charts.Operator, "replicas: 2", "at '': additional properties 'replicas' not allowed"},
		"an unknown setting":               {charts.Operator, "config: {controllers: {gardens: {}}}", "at '/config/controllers': additional properties 'gardens' not allowed"},
		"a setting of another type":        {charts.Operator, "config: {controllers: {garden: {concurrentSyncs: many}}}", "at '/config/controllers/garden/concurrentSyncs': got string, want null or integer"},
		"a field of a pod of another type": {charts.Operator, "env: [{name: A, value: 5}]", "at '/env/0/value': got number"},
		"an image that is a text":          {charts.Gardenlet, "image: registry.example/gardener:v1", "at '/image': got string"},
		"an unknown setting of gardenlets": {charts.Gardenlet, "config: {seedConfig: {metadata: {name: a}, spec: {regions: a}}}", "at '/config/seedConfig/spec': additional properties 'regions' not allowed"},
		"a chart without a reference":      {charts.ProviderLocal, "registries: []", "at '': additional properties 'registries' not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tryTemplate(t, tc.chart, tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

const allGardenletValues = `
replicaCount: 2
image: {ref: registry.example/gardener:v1, pullPolicy: Always}
serviceAccountName: other
resources: {limits: {memory: 1Gi}}
podLabels: {team: a}
podAnnotations: {note: b}
env: [{name: HTTPS_PROXY, value: http://proxy}]
hostAliases: [{ip: 10.2.0.1, hostnames: [api.garden.example]}]
tolerations: [{key: garden, operator: Exists}]
additionalVolumes: [{name: more, emptyDir: {}}]
additionalVolumeMounts: [{name: more, mountPath: /more}]
enableHealthProbes: false
isolateClusterResources: true
componentImageVectorOverwrites: |
  components:
  - name: etcd-druid
    imageVectorOverwrite: |
      images: []
selfUpgrade: {deployment: {helm: {ociRepository: {ref: "registry.example/charts/gardenlet:v1"}}}}
config:
  apiVersion: gardenlet.config.gardener.cloud/v1alpha1
  kind: GardenletConfiguration
  gardenClientConnection:
    gardenClusterAddress: https://api.garden.example
    bootstrapKubeconfig: {kubeconfig: bootstrap}
  seedConfig: {metadata: {name: local}}
`

func TestGardenlet(t *testing.T) {
	for name, values := range map[string]string{"default": "config: {seedConfig: {metadata: {name: local}}}", "all": allGardenletValues} {
		t.Run(name, func(t *testing.T) {
			objects := template(t, charts.Gardenlet, values)
			golden.Objects(t, "gardenlet-"+name+".yaml", objects)
			gardenletConfig(t, objects)
		})
	}
}

func gardenletConfig(t *testing.T, objects []client.Object) *gardenletconfigv1alpha1.GardenletConfiguration {
	t.Helper()
	kind := configfile.Kind[gardenletconfigv1alpha1.GardenletConfiguration]{AddToScheme: gardenletconfigv1alpha1.AddToScheme}
	config, err := kind.Decode([]byte(find[*corev1.ConfigMap](t, objects, "gardenlet").Data["config.yaml"]))
	if err != nil {
		t.Fatalf("the configuration of gardenlet is invalid: %v", err)
	}
	return config
}

// The Gardenlet by which a gardenlet updates itself has the settings of the release, and not its credentials.
func TestSelfUpgrade(t *testing.T) {
	text := find[*corev1.ConfigMap](t, template(t, charts.Gardenlet, allGardenletValues), "gardenlet-selfupgrade-config").Data["gardenlet.yaml"]
	object, _, err := serializer.NewCodecFactory(scheme(t), serializer.EnableStrict).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := object.(*seedmanagementv1alpha1.Gardenlet)
	if got.Name != "local" || got.Namespace != "garden" {
		t.Errorf("it is named %s/%s", got.Namespace, got.Name)
	}
	deployment := got.Spec.Deployment
	if *deployment.Helm.OCIRepository.Ref != "registry.example/charts/gardenlet:v1" || *deployment.ReplicaCount != 2 || *deployment.EnableHealthProbes ||
		*deployment.Image.Ref != "registry.example/gardener:v1" || deployment.Image.Repository != nil || deployment.ComponentImageVectorOverwrite == nil || deployment.PodLabels["team"] != "a" {
		t.Errorf("the deployment is %+v", deployment)
	}
	config, err := configfile.Kind[gardenletconfigv1alpha1.GardenletConfiguration]{AddToScheme: gardenletconfigv1alpha1.AddToScheme}.Decode(got.Spec.Config.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if config.SeedConfig.Name != "local" || bytes.Contains(got.Spec.Config.Raw, []byte("kubeconfig\":\"bootstrap")) {
		t.Errorf("the configuration is %s", got.Spec.Config.Raw)
	}
}

// The chart and the component deploy the same, so that neither misses what the other one learns.
func TestGardenletIsTheComponent(t *testing.T) {
	for name, replicas := range map[string]int32{"one pod": 1, "two pods": 2} {
		t.Run(name, func(t *testing.T) {
			v := gardenlet.Values{
				Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: replicas, BootstrapKubeconfig: []byte("bootstrap"),
				ImageVectorOverwrite: "images: []\n",
				Config: gardenletconfigv1alpha1.GardenletConfiguration{
					SeedConfig: &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: corev1beta1.SeedTemplate{ObjectMeta: metav1.ObjectMeta{Name: "local"}}},
				},
			}
			want, err := gardenlet.Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			values, err := yaml.Marshal(map[string]any{
				"replicaCount": replicas, "revisionHistoryLimit": 1, "image": map[string]any{"ref": v.Image}, "imageVectorOverwrite": v.ImageVectorOverwrite,
				"config": map[string]any{
					"gardenClientConnection": map[string]any{"bootstrapKubeconfig": map[string]any{"kubeconfig": "bootstrap"}},
					"seedConfig":             map[string]any{"metadata": map[string]any{"name": "local"}},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := template(t, charts.Gardenlet, string(values))
			if diff := cmp.Diff(gardenletConfig(t, want), gardenletConfig(t, got)); diff != "" {
				t.Errorf("the configuration differs (-component +chart):\n%s", diff)
			}
			if diff := cmp.Diff(byKindAndName(t, want), byKindAndName(t, got)); diff != "" {
				t.Errorf("objects differ (-component +chart):\n%s", diff)
			}
		})
	}
}

// byKindAndName returns objects as they are sent, without the encoding of the configuration and without checksums.
func byKindAndName(t *testing.T, objects []client.Object) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.ConfigMap:
			if object.Name == "gardenlet" {
				object.Data = nil
			}
		case *appsv1.Deployment:
			for key := range object.Spec.Template.Annotations {
				object.Spec.Template.Annotations[key] = "set"
			}
		}
		gvks, _, err := scheme(t).ObjectKinds(object)
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(gvks[0])
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		out[gvks[0].Kind+" "+object.GetName()] = content
	}
	return out
}

func TestArchives(t *testing.T) {
	for _, name := range charts.Names() {
		first, err := charts.Archive(name)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := charts.Archive(name); err != nil || !bytes.Equal(first, again) {
			t.Errorf("the archive of chart %s differs the second time (%v)", name, err)
		}
	}
}
