package crds

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// maxSize is the most that a manifest may take as JSON, so that `kubectl apply` can keep a copy of it in an annotation, which may
// have 256 KiB together with all others.
const maxSize = 240 << 10

func TestDefinitionsAreValid(t *testing.T) {
	for group, get := range map[string]func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		"autoscaling.gardener.cloud": Autoscaling,
		"dashboard.gardener.cloud":   Dashboard,
		"druid.gardener.cloud":       Druid,
		"extensions.gardener.cloud":  Extensions,
		"gateway.networking.k8s.io":  Gateway,
		"autoscaling.k8s.io":         VerticalPodAutoscaler,
		"machine.sapcloud.io":        Machine,
		"operator.gardener.cloud":    Operator,
		"resources.gardener.cloud":   Resources,
		// All of them, sorted by directory.
		"fluentbit.fluent.io":          foreign("fluentbit.fluent.io"),
		"monitoring.coreos.com":        foreign("monitoring.coreos.com"),
		"networking.istio.io":          foreign("networking.istio.io"),
		"opentelemetry.io":             foreign("opentelemetry.io"),
		"operator.victoriametrics.com": foreign("operator.victoriametrics.com"),
		"perses.dev":                   foreign("perses.dev"),
	} {
		t.Run(group, func(t *testing.T) {
			crds, err := get()
			if err != nil {
				t.Fatal(err)
			}
			if len(crds) == 0 {
				t.Error("there are no definitions")
			}
			if !slices.IsSortedFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) }) {
				t.Error("they are not sorted by name")
			}
			for _, crd := range crds {
				if crd.Spec.Group != group {
					t.Errorf("%s is of group %s", crd.Name, crd.Spec.Group)
				}
				data, err := json.Marshal(crd)
				if err != nil {
					t.Fatal(err)
				}
				if len(data) > maxSize {
					t.Errorf("%s has %d bytes, more than %d", crd.Name, len(data), maxSize)
				}
				// The API server's own validation: structural schema, cost of rules, names.
				apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
				apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
				internal := &apiextensions.CustomResourceDefinition{}
				if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
					t.Fatal(err)
				}
				for _, version := range crd.Spec.Versions {
					if version.Storage {
						internal.Status.StoredVersions = []string{version.Name}
					}
				}
				if errs := validation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
					t.Errorf("%s: %v", crd.Name, errs.ToAggregate())
				}
			}
		})
	}
}

// foreign returns the definitions of a group among those of other projects.
func foreign(group string) func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		all, err := Foreign()
		return slices.DeleteFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Spec.Group != group }), err
	}
}

// Charts of extensions have objects of these kinds, and a ManagedResource with one that the seed does not serve is never applied. Their objects are
// stored as they are: there are no schemas.
func TestForeign(t *testing.T) {
	all, err := Foreign()
	if err != nil {
		t.Fatal(err)
	}
	groups, size := map[string]int{}, 0
	for _, crd := range all {
		groups[crd.Spec.Group]++
		data, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		size += len(data)
		for _, version := range crd.Spec.Versions {
			spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
			if preserve := spec.XPreserveUnknownFields; preserve == nil || !*preserve || len(spec.Properties) > 0 {
				t.Errorf("%s has a schema for %s", crd.Name, version.Name)
			}
		}
	}
	want := map[string]int{
		"fluentbit.fluent.io": 13, "monitoring.coreos.com": 10, "networking.istio.io": 9, "opentelemetry.io": 5, "operator.victoriametrics.com": 1, "perses.dev": 4,
	}
	if !maps.Equal(groups, want) {
		t.Errorf("there are %v, want %v", groups, want)
	}
	if size > maxSize/5 {
		t.Errorf("they have %d bytes", size)
	}
}
