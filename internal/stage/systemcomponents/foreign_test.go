package systemcomponents

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/env"
)

// Charts of extensions can be applied, with all that they say. A CRD of another party keeps its schema, and those of the gardenlet are updated.
func TestForeignCRDs(t *testing.T) {
	e := env.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Foreign()
	if err != nil {
		t.Fatal(err)
	}
	const installed, stale, taken = "prometheusrules.monitoring.coreos.com", "probes.monitoring.coreos.com", "podmonitors.monitoring.coreos.com"
	in := &Inputs{API: c, FieldManager: "gardenlet"}
	for _, definition := range definitions {
		owner := map[string]string{installed: "helm", stale: in.FieldManager}[definition.Name]
		if owner == "" {
			continue
		}
		definition.Spec.Names.ShortNames = []string{"earlier"}
		if err := kube.Apply(t.Context(), c, owner, definition); err != nil {
			t.Fatal(err)
		}
	}

	for range 2 {
		if err := in.deployForeignCRDs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, definition := range definitions {
		if definition.Name != taken {
			continue
		}
		definition.Spec.Names.ShortNames = []string{"later"}
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "with a schema"
		if err := kube.Apply(t.Context(), c, "helm", definition); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.deployForeignCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{installed: "earlier", stale: "prb", taken: "later"} {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, definition); err != nil {
			t.Fatal(err)
		}
		if got := definition.Spec.Names.ShortNames; len(got) != 1 || got[0] != want {
			t.Errorf("%s has the short names %q, want %q", name, got, want)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "persistentvolumeclaimautoscalers.autoscaling.gardener.cloud"}, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
		t.Error(err)
	}
	for _, tc := range []struct {
		apiVersion, kind string
		// path leads to a field that a chart sets. Without one, the original does not serve the version.
		path []string
	}{
		{"monitoring.coreos.com/v1", "ServiceMonitor", []string{"spec", "selector", "matchLabels", "app"}},
		{"monitoring.coreos.com/v1alpha1", "ScrapeConfig", []string{"spec", "scrapeProtocols"}},
		{"monitoring.coreos.com/v1", "ScrapeConfig", nil},
		{"fluentbit.fluent.io/v1alpha2", "ClusterFilter", []string{"spec", "match"}},
		{"fluentbit.fluent.io/v1alpha2", "ClusterParser", []string{"spec", "regex", "regex"}},
		{"networking.istio.io/v1alpha3", "EnvoyFilter", []string{"spec", "workloadSelector", "labels", "app"}},
		{"networking.istio.io/v1beta1", "EnvoyFilter", nil},
		{"networking.istio.io/v1", "VirtualService", []string{"spec", "exportTo"}},
		{"networking.istio.io/v1beta1", "DestinationRule", []string{"spec", "host"}},
		{"operator.victoriametrics.com/v1", "VLSingle", []string{"spec", "retentionPeriod"}},
		{"opentelemetry.io/v1beta1", "OpenTelemetryCollector", []string{"spec", "config", "receivers"}},
		{"perses.dev/v1alpha2", "PersesGlobalDatasource", []string{"spec", "client", "tls"}},
	} {
		t.Run(tc.apiVersion+" "+tc.kind, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetAPIVersion(tc.apiVersion)
			object.SetKind(tc.kind)
			object.SetNamespace("default")
			object.SetName("a")
			if tc.path == nil {
				if err := c.Create(t.Context(), object); !meta.IsNoMatchError(err) {
					t.Errorf("the version is served: %v", err)
				}
				return
			}
			if err := unstructured.SetNestedField(object.Object, "kept", tc.path...); err != nil {
				t.Fatal(err)
			}
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			if got, _, err := unstructured.NestedString(object.Object, tc.path...); got != "kept" || err != nil {
				t.Errorf("%v is %q, %v", tc.path, got, err)
			}
		})
	}
}
