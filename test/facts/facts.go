// Package facts finds the compatibility facts that tests compare with.
package facts

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the directory with the compatibility facts, and skips the test if there is none.
func Dir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("GARDENER_COMPAT_DIR"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "resources.yaml")); err != nil {
			t.Fatalf("GARDENER_COMPAT_DIR has no compatibility facts: %v", err)
		}
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		candidate := filepath.Join(dir, "shared", "compat")
		if _, err := os.Stat(filepath.Join(candidate, "resources.yaml")); err == nil {
			return candidate
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Skip("no compatibility facts found; name their directory in GARDENER_COMPAT_DIR")
		}
		dir = parent
	}
}
