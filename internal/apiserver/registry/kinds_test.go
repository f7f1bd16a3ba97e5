package registry

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/test/facts"
)

// resourceFacts are what the facts say about a resource.
type resourceFacts struct {
	Group, Version, Kind, Plural, Singular string
	ShortNames, Categories                 []string
	Namespaced                             bool
	FieldSelectors                         []string
	Subresources                           []subresourceFacts
	PrinterColumns                         []columnFacts
}

type subresourceFacts struct {
	Name, APIVersion, Kind string
	Verbs                  []string
}

type columnFacts struct {
	Name, Type, Format string
	Priority           int32
}

// Clients find the resources, and see the tables, that they know.
func TestKinds(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(facts.Dir(t), "resources.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		APIServer struct{ Resources []resourceFacts }
	}
	if err := yaml.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	served := map[string]resourceFacts{}
	for _, k := range kinds(core.Options{}) {
		for _, version := range k.versions() {
			served[version.String()+"/"+k.plural] = described(k, version.Version)
		}
	}
	if len(all.APIServer.Resources) == 0 {
		t.Fatal("the facts name no resources")
	}
	for _, want := range all.APIServer.Resources {
		name := want.Group + "/" + want.Version + "/" + want.Plural
		t.Run(name, func(t *testing.T) {
			sorted := cmpopts.SortSlices(strings.Compare)
			bySubresource := cmpopts.SortSlices(func(a, b subresourceFacts) int { return strings.Compare(a.Name, b.Name) })
			if diff := cmp.Diff(want, served[name], cmpopts.EquateEmpty(), sorted, bySubresource); diff != "" {
				t.Errorf("served resource (-want +got):\n%s", diff)
			}
		})
		delete(served, name)
	}
	// What the documents have, and the facts do not.
	for _, extra := range []string{
		"core.gardener.cloud/v1beta1/plants", "settings.gardener.cloud/v1alpha1/openidconnectpresets",
		"settings.gardener.cloud/v1alpha1/clusteropenidconnectpresets",
	} {
		if _, ok := served[extra]; !ok {
			t.Errorf("%s is not served", extra)
		}
		delete(served, extra)
	}
	for name := range served {
		t.Errorf("%s is served, but the facts do not name it", name)
	}
}

// Each cell has a column, and each column says what it shows.
func TestTables(t *testing.T) {
	for _, k := range kinds(core.Options{}) {
		t.Run(k.plural, func(t *testing.T) {
			result, err := table{k}.ConvertToTable(t.Context(), k.newObject(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if cells := len(result.Rows[0].Cells); cells != len(k.columns) {
				t.Errorf("%d cells for %d columns", cells, len(k.columns))
			}
			for _, column := range k.columns {
				if column.Description == "" {
					t.Errorf("column %s has no description", column.Name)
				}
			}
		})
	}
}

func described(k *kind, version string) resourceFacts {
	described := resourceFacts{
		Group: k.gvk.Group, Version: version, Kind: k.gvk.Kind, Plural: k.plural, Singular: k.singular, ShortNames: k.shortNames,
		Categories: k.categories, Namespaced: k.namespaced, FieldSelectors: k.selectors(),
	}
	for _, column := range k.columns {
		described.PrinterColumns = append(described.PrinterColumns, columnFacts{column.Name, column.Type, column.Format, column.Priority})
	}
	main := &strategyStore{Store: &genericregistry.Store{NewFunc: k.newObject}}
	subresources := map[string]rest.Storage{}
	if k.subresources != nil {
		subresources = k.subresources(main, Settings{})
	}
	if k.status {
		subresources["status"] = main.view(statusStrategy{})
	}
	for name, storage := range subresources {
		facts := subresourceFacts{Name: name, APIVersion: k.gvk.Group + "/" + version, Kind: k.gvk.Kind}
		if of, ok := storage.(rest.GroupVersionKindProvider); ok {
			facts.APIVersion, facts.Kind = of.GroupVersionKind(k.gvk.GroupVersion()).ToAPIVersionAndKind()
		} else if name == "token" {
			facts.Kind = "TokenRequest" // its type is of the same group, so the server finds the kind
		}
		if _, ok := storage.(rest.Patcher); ok {
			facts.Verbs = append(facts.Verbs, "get", "patch", "update")
		}
		if _, ok := storage.(rest.NamedCreater); ok {
			facts.Verbs = append(facts.Verbs, "create")
		}
		slices.Sort(facts.Verbs)
		described.Subresources = append(described.Subresources, facts)
	}
	return described
}
