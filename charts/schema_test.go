package charts_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/test/golden"
)

// The types of values: values.schema.json is generated from them, so that a misspelt setting is an error of `helm install`, not of a pod.

// podValues are values of a Deployment.
type podValues struct {
	ReplicaCount           int32                       `json:"replicaCount"`
	RevisionHistoryLimit   int32                       `json:"revisionHistoryLimit"`
	Image                  imageValues                 `json:"image"`
	Resources              corev1.ResourceRequirements `json:"resources"`
	PodLabels              map[string]string           `json:"podLabels"`
	PodAnnotations         map[string]string           `json:"podAnnotations"`
	Env                    []corev1.EnvVar             `json:"env"`
	HostAliases            []corev1.HostAlias          `json:"hostAliases"`
	Tolerations            []corev1.Toleration         `json:"tolerations"`
	AdditionalVolumes      []corev1.Volume             `json:"additionalVolumes"`
	AdditionalVolumeMounts []corev1.VolumeMount        `json:"additionalVolumeMounts"`
}

type imageValues struct {
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Ref        string `json:"ref"`
	PullPolicy string `json:"pullPolicy"`
}

type operatorValues struct {
	podValues                      `json:",inline"`
	DNSConfig                      corev1.PodDNSConfig                          `json:"dnsConfig"`
	ImageVectorOverwrite           string                                       `json:"imageVectorOverwrite"`
	ComponentImageVectorOverwrites string                                       `json:"componentImageVectorOverwrites"`
	ChartsImageVectorOverwrite     string                                       `json:"chartsImageVectorOverwrite"`
	Config                         operatorconfigv1alpha1.OperatorConfiguration `json:"config"`
}

type gardenletValues struct {
	podValues                      `json:",inline"`
	ServiceAccountName             string                                         `json:"serviceAccountName"`
	EnableHealthProbes             bool                                           `json:"enableHealthProbes"`
	ImageVectorOverwrite           string                                         `json:"imageVectorOverwrite"`
	ComponentImageVectorOverwrites string                                         `json:"componentImageVectorOverwrites"`
	IsolateClusterResources        bool                                           `json:"isolateClusterResources"`
	Config                         gardenletconfigv1alpha1.GardenletConfiguration `json:"config"`
	SelfUpgrade                    selfUpgradeValues                              `json:"selfUpgrade"`
}

type selfUpgradeValues struct {
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
	Deployment struct {
		Helm struct {
			OCIRepository gardencorev1.OCIRepository `json:"ociRepository"`
		} `json:"helm"`
	} `json:"deployment"`
}

type providerHostsValues struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
	LogLevel string `json:"logLevel"`
	// Gardener is what gardenlet adds: it may add more.
	Gardener apiextensionsv1.JSON `json:"gardener"`
}

// providerLocalAdmissionValues are those of both charts.
type providerLocalAdmissionValues struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
	LogLevel string `json:"logLevel"`
	// Gardener is what gardener-operator adds: it may add more.
	Gardener apiextensionsv1.JSON `json:"gardener"`
}

type providerLocalValues struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
	LogLevel string `json:"logLevel"`
	DNS      struct {
		ClusterIPs     map[string]string `json:"clusterIPs"`
		ServedByGarden []string          `json:"servedByGarden"`
		ClusterIP      string            `json:"clusterIP"`
		NodePort       int32             `json:"nodePort"`
		Zones          []string          `json:"zones"`
	} `json:"dns"`
	Backup struct {
		HostPath string `json:"hostPath"`
	} `json:"backup"`
	Machines providerlocalconfigv1alpha1.MachinesConfiguration `json:"machines"`
	Images   struct {
		Flannel      string `json:"flannel"`
		Crun         string `json:"crun"`
		LocalStorage string `json:"localStorage"`
	} `json:"images"`
	// Gardener is what gardenlet and gardener-operator add: they may add more.
	Gardener apiextensionsv1.JSON `json:"gardener"`
}

func TestSchemas(t *testing.T) {
	for chart, values := range map[string]any{
		charts.Operator: operatorValues{}, charts.Gardenlet: gardenletValues{}, charts.ProviderHosts: providerHostsValues{}, charts.ProviderLocal: providerLocalValues{},
		charts.ProviderLocalAdmissionRuntime: providerLocalAdmissionValues{}, charts.ProviderLocalAdmissionApplication: providerLocalAdmissionValues{},
	} {
		t.Run(chart, func(t *testing.T) {
			s := schemas{}
			root := s.object(reflect.TypeOf(values))
			root["properties"].(map[string]any)["global"] = map[string]any{"type": "object"} // for charts that have this one as a dependency
			root["$schema"], root["title"], root["definitions"] = "http://json-schema.org/draft-07/schema#", "Values of the chart "+chart, s
			if chart == charts.ProviderHosts { // The one of the chart is empty.
				root["required"], root["properties"].(map[string]any)["image"] = []string{"image"}, map[string]any{"type": "string", "minLength": 1}
			}
			if chart == charts.Gardenlet { // It is in the values only: the chart creates a Secret with it.
				s.property(reflect.TypeOf(gardenletconfigv1alpha1.GardenClientConnection{}))["bootstrapKubeconfig"] = map[string]any{
					"type": []string{"object", "null"}, "additionalProperties": false, "properties": map[string]any{
						"name": map[string]any{"type": "string"}, "namespace": map[string]any{"type": "string"}, "kubeconfig": map[string]any{"type": "string"},
					},
				}
			}
			text, err := json.MarshalIndent(root, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, "../"+chart+"/values.schema.json", string(text)+"\n")
		})
	}
}

// schemas are the schemas of Go types by their names.
type schemas map[string]map[string]any

// verbatim are the schemas of types that encode themselves.
var verbatim = map[reflect.Type]map[string]any{
	reflect.TypeFor[metav1.Duration]():      {"type": "string", "pattern": `^[-+]?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`},
	reflect.TypeFor[metav1.Time]():          {"type": []string{"string", "null"}},
	reflect.TypeFor[metav1.MicroTime]():     {"type": []string{"string", "null"}},
	reflect.TypeFor[resource.Quantity]():    {"type": []string{"string", "number"}},
	reflect.TypeFor[intstr.IntOrString]():   {"type": []string{"string", "integer"}},
	reflect.TypeFor[runtime.RawExtension](): {},
	reflect.TypeFor[apiextensionsv1.JSON](): {},
	reflect.TypeFor[metav1.FieldsV1]():      {},
	reflect.TypeFor[[]byte]():               {"type": "string"},
}

func (s schemas) of(typ reflect.Type) map[string]any {
	if schema, ok := verbatim[typ]; ok {
		return maps.Clone(schema)
	}
	switch typ.Kind() { //nolint:exhaustive // no other kinds are in values
	case reflect.Pointer:
		return nullable(s.of(typ.Elem()))
	case reflect.Struct:
		name := path(typ)
		if name == "" {
			return s.object(typ)
		}
		if s[name] == nil {
			s[name] = map[string]any{} // ends a recursion
			s[name] = s.object(typ)
		}
		return map[string]any{"$ref": "#/definitions/" + name}
	case reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": s.of(typ.Elem())}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": s.of(typ.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint16, reflect.Uint8, reflect.Uint64, reflect.Uint:
		return map[string]any{"type": "integer"}
	case reflect.Interface:
		return map[string]any{}
	}
	panic("no schema for " + typ.String())
}

// object returns the schema of a struct. It has no required fields: values are put on those of the chart.
func (s schemas) object(typ reflect.Type) map[string]any {
	properties := map[string]any{}
	for _, field := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && (name == "" || strings.Contains(options, "inline")), name == "-", len(field.Index) > 1 && !inlined(typ, field.Index):
		default:
			properties[name] = s.of(field.Type)
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// inlined says whether all structs around a field are inlined.
func inlined(typ reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		name, _, _ := strings.Cut(typ.FieldByIndex(index[:i]).Tag.Get("json"), ",")
		if name != "" {
			return false
		}
	}
	return true
}

// property returns the properties of a type that has a schema.
func (s schemas) property(typ reflect.Type) map[string]any {
	return s[path(typ)]["properties"].(map[string]any)
}

func path(typ reflect.Type) string {
	if typ.Name() == "" {
		return ""
	}
	parts := strings.Split(typ.PkgPath(), "/")
	return strings.Join(append(slices.Clone(parts[max(0, len(parts)-2):]), typ.Name()), ".")
}

func nullable(schema map[string]any) map[string]any {
	if ref, ok := schema["$ref"]; ok {
		return map[string]any{"anyOf": []any{map[string]any{"$ref": ref}, map[string]any{"type": "null"}}}
	}
	if typ, ok := schema["type"].(string); ok {
		schema["type"] = []string{typ, "null"}
	}
	return schema
}
