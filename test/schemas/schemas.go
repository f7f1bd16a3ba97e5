// Package schemas checks manifests against the schemas that gardenctl writes, as editors and kubeconform do.
package schemas

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/apiserver/openapi"
	"gardener.cloud/gardener/internal/gardenctl/schema"
)

// Schemas are compiled JSON schemas by their file, such as core.gardener.cloud/shoot_v1beta1.json.
type Schemas map[string]*jsonschema.Schema

// Compile compiles the schemas of all kinds.
func Compile(t testing.TB) Schemas {
	t.Helper()
	files, err := schema.Files(openapi.GetOpenAPIDefinitions, "test")
	if err != nil {
		t.Fatal(err)
	}
	all := Schemas{}
	for file, content := range files {
		if strings.HasPrefix(file, "openapi/") {
			continue
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(file, document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if all[file], err = compiler.Compile(file); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return all
}

// Check checks a manifest in YAML. It returns false if there is no schema for its kind.
func (s Schemas) Check(manifest []byte) (known bool, err error) {
	data, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		return false, err
	}
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return false, err
	}
	fields, _ := content.(map[string]any)
	object := &unstructured.Unstructured{Object: fields}
	gvk := object.GroupVersionKind()
	compiled := s[path.Join(gvk.Group, fmt.Sprintf("%s_%s.json", strings.ToLower(gvk.Kind), gvk.Version))]
	if compiled == nil {
		return false, nil
	}
	return true, compiled.Validate(content)
}

// Documents are the documents of a YAML file, without empty ones.
func Documents(content []byte) [][]byte {
	var all [][]byte
	for document := range bytes.SplitSeq(append([]byte("\n"), content...), []byte("\n---")) {
		var parsed any
		if err := yaml.Unmarshal(document, &parsed); err == nil && parsed == nil {
			continue
		}
		all = append(all, document)
	}
	return all
}
