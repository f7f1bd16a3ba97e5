// Package facts finds the compatibility facts: names, types, values and recorded answers of the original project.
package facts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Variable is the environment variable that names the directory.
const Variable = "GARDENER_COMPAT_DIR"

// ErrNotFound says that there are no facts on this machine.
var ErrNotFound = errors.New("no compatibility facts found; name their directory in " + Variable)

// Dir returns the directory with the facts, and skips the test if there is none.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := Find()
	switch {
	case errors.Is(err, ErrNotFound):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return dir
}

// Find returns the directory with the facts: that of the environment variable, or shared/compat beside the repository or
// beside one of its parent directories.
func Find() (string, error) {
	if dir := os.Getenv(Variable); dir != "" {
		if !complete(dir) {
			return "", fmt.Errorf("%s=%s: there is no resources.yaml", Variable, dir)
		}
		return dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		candidate := filepath.Join(dir, "shared", "compat")
		if complete(candidate) {
			return candidate, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ErrNotFound
		}
		dir = parent
	}
}

func complete(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "resources.yaml"))
	return err == nil
}
