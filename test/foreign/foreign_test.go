package foreign

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// What it imported of this module would be agreed upon with the gardenlet, and prove nothing about extensions that do not have it.
func TestItHasNothingOfThisModule(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 3 {
		t.Fatalf("files are %v (%v)", files, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			if strings.Contains(imported.Path.Value, "gardener.cloud/gardener") {
				t.Errorf("%s imports %s", name, imported.Path.Value)
			}
		}
	}
}
