package crds

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// server validates objects as the API server does: defaults, then schema, then rules.
type server struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func newServer(t *testing.T, get func() ([]*apiextensionsv1.CustomResourceDefinition, error), kind string) server {
	t.Helper()
	list, err := get()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range list {
		if crd.Spec.Names.Kind != kind {
			continue
		}
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(internal)
		if err != nil {
			t.Fatal(err)
		}
		schema, _, err := validation.NewSchemaValidator(internal)
		if err != nil {
			t.Fatal(err)
		}
		return server{structural, schema, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	t.Fatalf("no definition of %s", kind)
	return server{}
}

// decode reads an object and gives it its defaults.
func (s server) decode(t *testing.T, content string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	structuraldefaulting.Default(out, s.structural)
	return out
}

func (s server) validate(obj, old map[string]any) field.ErrorList {
	if old == nil {
		errs := validation.ValidateCustomResource(nil, obj, s.schema)
		more, _ := s.rules.Validate(context.Background(), nil, s.structural, obj, nil, celconfig.RuntimeCELCostBudget)
		return append(errs, more...)
	}
	errs := validation.ValidateCustomResourceUpdate(nil, obj, old, s.schema)
	more, _ := s.rules.Validate(context.Background(), nil, s.structural, obj, old, celconfig.RuntimeCELCostBudget)
	return append(errs, more...)
}

const (
	etcd = `
apiVersion: druid.gardener.cloud/v1alpha1
kind: Etcd
metadata: {name: etcd-main, namespace: shoot--foo--bar}
spec:
  labels: {role: main}
  replicas: 3
  backup:
    deltaSnapshotPeriod: 5m
    garbageCollectionPeriod: 12h
    fullSnapshotSchedule: "0 */24 * * *"
    store: {prefix: etcd-main, provider: local, container: bucket}
  etcd:
    defragmentationSchedule: "0 */24 * * *"
    quota: 8Gi
`
	task = `
apiVersion: druid.gardener.cloud/v1alpha1
kind: EtcdOpsTask
metadata: {name: snapshot, namespace: shoot--foo--bar}
spec:
  etcdName: etcd-main
  config:
    onDemandSnapshot: {type: full, isFinal: true}
`
	join = `
    bootstrapWithExistingCluster:
      clientEndpoints: ["http://a:2379"]
      members: [{name: m-0, peerUrls: ["http://a:2380"]}]
`
	garden = `
apiVersion: operator.gardener.cloud/v1alpha1
kind: Garden
metadata: {name: local}
spec:
  runtimeCluster:
    ingress: {domains: [{name: ingress.example.com}], controller: {kind: nginx}}
    networking: {pods: [10.1.0.0/16], services: [10.2.0.0/16]}
    provider: {}
  virtualCluster:
    dns: {domains: [{name: garden.example.com}]}
    etcd: {main: {backup: {provider: local, secretRef: {name: backup}}}}
    gardener: {clusterIdentity: local}
    kubernetes: {version: 1.33.0}
    maintenance: {timeWindow: {begin: 220000+0100, end: 230000+0100}}
    networking: {services: [100.64.0.0/13]}
`
)

// TestRules checks what the API server accepts and refuses because of the definitions.
func TestRules(t *testing.T) {
	replace := func(content string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(content) }
	for name, tc := range map[string]struct {
		get      func() ([]*apiextensionsv1.CustomResourceDefinition, error)
		kind     string
		old, obj string // no old: create
		want     string // part of the error, or empty
	}{
		"Etcd":                          {get: Druid, kind: "Etcd", obj: etcd},
		"Etcd, a schedule without hour": {get: Druid, kind: "Etcd", obj: replace(etcd, "0 */24 * * *", "0 * *"), want: "fullSnapshotSchedule"},
		"Etcd, garbage collection too often": {
			get: Druid, kind: "Etcd", obj: replace(etcd, "12h", "5m"), want: "garbageCollectionPeriod must be longer than deltaSnapshotPeriod",
		},
		"Etcd, an invalid endpoint":      {get: Druid, kind: "Etcd", obj: replace(etcd, "provider: local", "endpointOverride: nowhere"), want: "endpointOverride must be a URL"},
		"Etcd grows":                     {get: Druid, kind: "Etcd", old: etcd, obj: replace(etcd, "replicas: 3", "replicas: 5")},
		"Etcd stops":                     {get: Druid, kind: "Etcd", old: etcd, obj: replace(etcd, "replicas: 3", "replicas: 0")},
		"Etcd starts":                    {get: Druid, kind: "Etcd", old: replace(etcd, "replicas: 3", "replicas: 0"), obj: etcd},
		"Etcd shrinks":                   {get: Druid, kind: "Etcd", old: etcd, obj: replace(etcd, "replicas: 3", "replicas: 1"), want: "replicas can only be increased"},
		"Etcd gets a storage class":      {get: Druid, kind: "Etcd", old: etcd, obj: etcd + "  storageClass: fast\n", want: "storageClass can neither be added nor removed"},
		"Etcd changes its storage class": {get: Druid, kind: "Etcd", old: etcd + "  storageClass: fast\n", obj: etcd + "  storageClass: slow\n", want: "storageClass is immutable"},
		"Etcd joins a cluster":           {get: Druid, kind: "Etcd", obj: strings.TrimSuffix(etcd, "\n") + join},
		"Etcd joins a cluster later":     {get: Druid, kind: "Etcd", old: etcd, obj: strings.TrimSuffix(etcd, "\n") + join, want: "only be set when the Etcd is created"},
		"Etcd leaves the cluster":        {get: Druid, kind: "Etcd", old: strings.TrimSuffix(etcd, "\n") + join, obj: etcd},
		"Etcd joins without a URL":       {get: Druid, kind: "Etcd", obj: strings.TrimSuffix(etcd, "\n") + replace(join, "http://a:2379", "a"), want: "must be URLs"},
		"Etcd joins TLS without TLS":     {get: Druid, kind: "Etcd", obj: strings.TrimSuffix(etcd, "\n") + replace(join, "http://a:2380", "https://a:2380"), want: "without peerUrlTls"},

		"EtcdOpsTask":                       {get: Druid, kind: "EtcdOpsTask", obj: task},
		"EtcdOpsTask, final delta snapshot": {get: Druid, kind: "EtcdOpsTask", obj: replace(task, "type: full", "type: delta"), want: "only a full snapshot can be final"},
		"EtcdOpsTask without an operation":  {get: Druid, kind: "EtcdOpsTask", obj: replace(task, "onDemandSnapshot: {type: full, isFinal: true}", "{}"), want: "config"},
		"EtcdOpsTask changes":               {get: Druid, kind: "EtcdOpsTask", old: task, obj: replace(task, "etcdName: etcd-main", "etcdName: etcd-events"), want: "etcdName is immutable"},

		"Garden":                    {get: Operator, kind: "Garden", obj: garden},
		"Garden, a time of day":     {get: Operator, kind: "Garden", obj: replace(garden, "220000+0100", "10pm"), want: "timeWindow.begin"},
		"Garden, another ingress":   {get: Operator, kind: "Garden", obj: replace(garden, "kind: nginx", "kind: caddy"), want: "ingress.controller.kind"},
		"Garden without domains":    {get: Operator, kind: "Garden", obj: replace(garden, "dns: {domains: [{name: garden.example.com}]}", "dns: {domains: []}"), want: "dns.domains"},
		"Garden changes its domain": {get: Operator, kind: "Garden", old: garden, obj: replace(garden, "garden.example.com", "other.example.com"), want: "domains is immutable"},
		"Garden changes its identity": {
			get: Operator, kind: "Garden", old: garden, obj: replace(garden, "clusterIdentity: local", "clusterIdentity: other"), want: "clusterIdentity is immutable",
		},
		"Garden moves its backups": {
			get: Operator, kind: "Garden", old: garden, obj: replace(garden, "provider: local, secretRef", "provider: local, region: there, secretRef"), want: "region can neither be added nor removed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.get, tc.kind)
			var old map[string]any
			if tc.old != "" {
				old = s.decode(t, tc.old)
			}
			err := s.validate(s.decode(t, tc.obj), old).ToAggregate()
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && err == nil:
				t.Errorf("accepted instead of refused with %q", tc.want)
			case err != nil && !strings.Contains(err.Error(), tc.want):
				t.Errorf("refused with %q instead of %q", err, tc.want)
			}
		})
	}
}

// TestServerSetsDefaults checks defaults of the definitions.
func TestServerSetsDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		get          func() ([]*apiextensionsv1.CustomResourceDefinition, error)
		kind, object string
		path         []string
		want         any
	}{
		"the time a snapshot may take": {Druid, "EtcdOpsTask", task, []string{"spec", "config", "onDemandSnapshot", "timeoutSecondsFull"}, int64(900)},
		"how long a task stays":        {Druid, "EtcdOpsTask", task, []string{"spec", "ttlSecondsAfterFinished"}, int64(3600)},
		"the dashboard's login": {
			Operator, "Garden", strings.Replace(garden, "clusterIdentity: local", "clusterIdentity: local, gardenerDashboard: {}", 1),
			[]string{"spec", "virtualCluster", "gardener", "gardenerDashboard", "enableTokenLogin"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.get, tc.kind)
			var value any = s.decode(t, tc.object)
			for _, name := range tc.path {
				value = value.(map[string]any)[name]
			}
			if value != tc.want {
				t.Errorf("%v is %v (%T) instead of %v", tc.path, value, value, tc.want)
			}
		})
	}
}
