package compat

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/test/schemas"
)

// TestExamplesMatchSchemas checks the example manifests of the original against the schemas that gardenctl writes for editors.
func TestExamplesMatchSchemas(t *testing.T) {
	root := filepath.Join(factsDir(t), "examples")
	all, checked := schemas.Compile(t), 0
	if err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, document := range schemas.Documents(content) {
			known, err := all.Check(withoutPlaceholders(t, document))
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if known {
				checked++
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if checked < 15 {
		t.Errorf("only %d documents are of kinds with a schema", checked)
	}
}

// withoutPlaceholders removes the texts that stand for the configuration of a provider, which is an object.
func withoutPlaceholders(t *testing.T, document []byte) []byte {
	t.Helper()
	var content any
	if err := yaml.Unmarshal(document, &content); err != nil {
		t.Fatal(err)
	}
	var clean func(any)
	clean = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, v := range value {
				if text, ok := v.(string); ok && strings.HasSuffix(key, "Config") && strings.Contains(text, "<") {
					delete(value, key)
				}
				clean(v)
			}
		case []any:
			for _, v := range value {
				clean(v)
			}
		}
	}
	clean(content)
	cleaned, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return cleaned
}
