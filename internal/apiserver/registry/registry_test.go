package registry

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/apiserver/scheme"
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
	for _, k := range kinds(Settings{}) {
		storage := storageOf(t, k)
		for _, gvk := range k.GroupVersionKinds() {
			described := described(t, storage, gvk)
			described.FieldSelectors = k.FieldSelectors()
			served[gvk.GroupVersion().String()+"/"+described.Plural] = described
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
	// The documents have these, the facts do not.
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

// Each column has a description, and each a cell even for an empty object.
func TestTables(t *testing.T) {
	for _, k := range kinds(Settings{}) {
		main := mainResource(t, storageOf(t, k))
		t.Run(main.GroupVersionResource.Resource, func(t *testing.T) {
			result, err := main.ConvertToTable(t.Context(), main.New(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if cells := len(result.Rows[0].Cells); cells != len(result.ColumnDefinitions) {
				t.Errorf("%d cells for %d columns", cells, len(result.ColumnDefinitions))
			}
			for _, column := range result.ColumnDefinitions {
				if column.Description == "" {
					t.Errorf("column %s has no description", column.Name)
				}
			}
		})
	}
}

// The reader of this process finds the store of a list by its type.
func TestLists(t *testing.T) {
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds(Settings{}) {
		main := mainResource(t, storageOf(t, k))
		t.Run(main.GroupVersionResource.Resource, func(t *testing.T) {
			kinds, _, err := s.ObjectKinds(main.NewList())
			if err != nil {
				t.Fatal(err)
			}
			want := k.GroupVersionKinds()[0]
			want.Kind += "List"
			if !slices.Contains(kinds, want) {
				t.Errorf("lists are %v, want %v", kinds, want)
			}
		})
	}
}

// withoutEtcd makes stores that have no connection to etcd.
type withoutEtcd struct{}

func (withoutEtcd) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		ResourcePrefix: resource.Resource,
		StorageConfig:  &storagebackend.ConfigForResource{},
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
			func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			return nil, func() {}, nil
		},
	}, nil
}

func storageOf(t *testing.T, k kind.Any) map[string]rest.Storage {
	t.Helper()
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	resources, err := k.Storage(s, withoutEtcd{})
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

func mainResource(t *testing.T, resources map[string]rest.Storage) *kind.Resource {
	t.Helper()
	for _, resource := range resources {
		if main, ok := resource.(*kind.Resource); ok {
			return main
		}
	}
	t.Fatal("no main resource")
	return nil
}

func described(t *testing.T, resources map[string]rest.Storage, gvk schema.GroupVersionKind) resourceFacts {
	t.Helper()
	main := mainResource(t, resources)
	described := resourceFacts{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: main.GroupVersionResource.Resource, Singular: main.GetSingularName(),
		ShortNames: main.ShortNames(), Categories: main.Categories(), Namespaced: main.NamespaceScoped(),
	}
	table, err := main.ConvertToTable(t.Context(), main.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range table.ColumnDefinitions {
		described.PrinterColumns = append(described.PrinterColumns, columnFacts{column.Name, column.Type, column.Format, column.Priority})
	}
	for path, storage := range resources {
		_, name, ok := strings.Cut(path, "/")
		if !ok {
			continue
		}
		facts := subresourceFacts{Name: name, APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
		if of, ok := storage.(rest.GroupVersionKindProvider); ok {
			facts.APIVersion, facts.Kind = of.GroupVersionKind(gvk.GroupVersion()).ToAPIVersionAndKind()
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
