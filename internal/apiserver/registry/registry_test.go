package registry

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
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

// A change of an object of one seed is not compared with the selectors of the gardenlets of all other seeds.
func TestWatchesOfGardenlets(t *testing.T) {
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"backupbuckets": "spec.seedName", "bastions": "spec.seedName", "controllerinstallations": "spec.seedRef.name",
	}
	got := map[string]string{}
	for _, k := range kinds(Settings{}) {
		triggers := storage.IndexerFuncs{}
		resources, err := k.Storage(s, withoutEtcd{triggers})
		if err != nil {
			t.Fatal(err)
		}
		main := mainResource(t, resources)
		for field, value := range triggers {
			got[main.GroupVersionResource.Resource] = field
			// The watch cache uses it for selectors of fields that it has an index of.
			if predicate := main.PredicateFunc(labels.Everything(), fields.Everything()); !slices.Contains(predicate.IndexFields, field) {
				t.Errorf("%s: %s is not indexed", main.GroupVersionResource, field)
			}
			if seed := value(onSeed(main.New(), "a")); seed != "a" {
				t.Errorf("%s: an object of seed a is for watches of %q", main.GroupVersionResource, seed)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of watches (-want +got):\n%s", diff)
	}
}

func onSeed(obj runtime.Object, seed string) runtime.Object {
	switch o := obj.(type) {
	case *corev1beta1.BackupBucket:
		o.Spec.SeedName = &seed
	case *corev1beta1.ControllerInstallation:
		o.Spec.SeedRef = &corev1.ObjectReference{Name: seed}
	case *operationsv1alpha1.Bastion:
		o.Spec.SeedName = &seed
	}
	return obj
}

// withoutEtcd makes stores that have no connection to etcd. It collects the functions by which changes are matched with watches, if it is not nil.
type withoutEtcd struct{ triggers storage.IndexerFuncs }

func (w withoutEtcd) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		ResourcePrefix: resource.Resource,
		StorageConfig:  &storagebackend.ConfigForResource{},
		Decorator: func(_ *storagebackend.ConfigForResource, _ string, _ func(runtime.Object) (string, error), _ func() runtime.Object,
			_ func() runtime.Object, _ storage.AttrFunc, triggers storage.IndexerFuncs, _ *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			if w.triggers != nil {
				maps.Copy(w.triggers, triggers)
			}
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
