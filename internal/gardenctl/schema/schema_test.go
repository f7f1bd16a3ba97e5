package schema_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"gardener.cloud/gardener/internal/apiserver/openapi"
	"gardener.cloud/gardener/internal/gardenctl/schema"
	"gardener.cloud/gardener/test/schemas"
)

// The manifests of this repository are valid.
func TestExamples(t *testing.T) {
	all, checked := schemas.Compile(t), map[string]int{}
	if err := filepath.WalkDir("../../../example", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, document := range schemas.Documents(content) {
			known, err := all.Check(document)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if known {
				checked[filepath.Base(file)]++
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"shoot.yaml", "project.yaml", "cloudprofile.yaml", "credentials.yaml", "garden.yaml", "garden-ha.yaml", "extension.yaml", "gardenlet.yaml"} {
		if checked[file] == 0 {
			t.Errorf("no document of %s has a schema", file)
		}
	}
}

// What an editor marks.
func TestInvalid(t *testing.T) {
	all := schemas.Compile(t)
	const shoot = "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: a, creationTimestamp: null}\n"
	const extension = "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Extension\nmetadata: {name: a}\n"
	const garden = "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Garden\nmetadata: {name: a}\n"
	const resource = "apiVersion: resources.gardener.cloud/v1alpha1\nkind: ManagedResource\nmetadata: {name: a, labels: {a: b}}\n"
	for name, tc := range map[string]struct{ manifest, want string }{
		"a Shoot":                       {manifest: shoot + "spec: {provider: {type: local, workers: [{name: a, machine: {type: b}, minimum: 1, maximum: 1, maxSurge: 50%}]}, region: null}"},
		"free configuration":            {manifest: shoot + "spec: {provider: {type: local, infrastructureConfig: {any: [thing]}}}"},
		"a quantity as a number":        {manifest: shoot + "spec: {provider: {type: local}, kubernetes: {kubelet: {kubeReserved: {cpu: 1, memory: 1Gi}}}}"},
		"a ManagedResource":             {manifest: resource + "spec: {secretRefs: [{name: a}]}\nstatus: {conditions: []}"},
		"a misspelt field":              {manifest: shoot + "spec: {provider: {typ: local}}", want: "/spec/provider"},
		"a field of another type":       {manifest: shoot + "spec: {provider: {type: local}, hibernation: {enabled: 5}}", want: "/spec/hibernation/enabled"},
		"misspelt metadata":             {manifest: strings.Replace(extension, "name: a", "nam: a", 1), want: "/metadata"},
		"a required field is missing":   {manifest: resource + "spec: {}", want: "/spec"},
		"an unknown value":              {manifest: garden + "spec: {virtualCluster: {gardener: {gardenerScheduler: {strategy: None}}}}", want: "/gardenerScheduler/strategy"},
		"null for an optional field":    {manifest: resource + "spec: {secretRefs: [{name: a}], class: null}"},
		"null for a required field":     {manifest: resource + "spec: {secretRefs: null}", want: "/spec/secretRefs"},
		"an unknown field far below":    {manifest: extension + "spec: {deployment: {extension: {helm: {ociRepository: {reff: a}}}}}", want: "/spec/deployment/extension/helm/ociRepository"},
		"an unknown field of the whole": {manifest: extension + "specs: {}", want: "''"},
	} {
		t.Run(name, func(t *testing.T) {
			known, err := all.Check([]byte(tc.manifest))
			if !known {
				t.Fatal("there is no schema")
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("the error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Documents of OpenAPI are complete, and say what kinds they describe.
func TestOpenAPI(t *testing.T) {
	files, err := schema.Files(openapi.GetOpenAPIDefinitions, "v1")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for file, content := range files {
		if !strings.HasPrefix(file, "openapi/apis/") {
			continue
		}
		var document struct {
			OpenAPI    string         `json:"openapi"`
			Paths      map[string]any `json:"paths"`
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(content, &document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if document.OpenAPI != "3.0.0" || document.Paths == nil {
			t.Errorf("%s has the version %q and the paths %v", file, document.OpenAPI, document.Paths)
		}
		for name, component := range document.Components.Schemas {
			if kinds, ok := component["x-kubernetes-group-version-kind"].([]any); ok {
				gvk := kinds[0].(map[string]any)
				described[path.Join(gvk["group"].(string), strings.ToLower(gvk["kind"].(string))+"_"+gvk["version"].(string)+".json")] = true
			}
			for _, part := range strings.Split(mustMarshal(t, component), `"$ref":"`)[1:] {
				ref, _, _ := strings.Cut(part, `"`)
				if document.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
					t.Errorf("%s: %s refers to %s, which is missing", file, name, ref)
				}
			}
		}
	}
	for file := range files {
		if !strings.HasPrefix(file, "openapi/") && !described[file] {
			t.Errorf("%s is in no document", file)
		}
	}
	for _, kind := range []string{
		"core.gardener.cloud/shoot_v1beta1.json", "core.gardener.cloud/controllerdeployment_v1.json", "seedmanagement.gardener.cloud/gardenlet_v1alpha1.json",
		"operations.gardener.cloud/bastion_v1alpha1.json", "security.gardener.cloud/workloadidentity_v1alpha1.json", "settings.gardener.cloud/openidconnectpreset_v1alpha1.json",
		"operator.gardener.cloud/garden_v1alpha1.json", "operator.gardener.cloud/extension_v1alpha1.json", "extensions.gardener.cloud/worker_v1alpha1.json",
		"resources.gardener.cloud/managedresource_v1alpha1.json", "druid.gardener.cloud/etcd_v1alpha1.json",
	} {
		if files[kind] == nil {
			t.Errorf("%s is missing", kind)
		}
	}
}

func mustMarshal(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
