package distribution

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// checkout writes files, named by their path below distribution/, and returns the root of a checkout that has them.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module gardener.cloud/gardener\n")
	for name, content := range files {
		write(t, filepath.Join(root, "distribution", name), content)
	}
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, root, cache string) *Distribution {
	t.Helper()
	d, err := Open(root, cache)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tiny is a product that builds within a second.
func tiny() map[string]string {
	return map[string]string{
		"tiny/product.yaml": `
description: A tiny product
licenses: Apache-2.0
version: v1.2.3
binaries:
- name: tiny
  package: .
  ldflags: ["-X main.version={{.Version}}"]
  links: [small]
images:
- repository: example.com/tiny
  entrypoint: [/usr/local/bin/tiny]
  user: "65532"
`,
		"tiny/go.mod":      "module example.com/tiny\n\ngo 1.26.0\n",
		"tiny/main.go":     "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
		"tiny/files/etc/x": "x\n",
	}
}

// recorder is a Progress that records what is started and finished.
type recorder struct {
	mu       sync.Mutex
	missing  int
	started  []string
	finished []string
}

func (r *recorder) Begin(_, missing int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing = missing
}

func (r *recorder) Step(string, string) {}
func (r *recorder) Waiting(string)      {}

func (r *recorder) Started(product string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, product)
}

func (r *recorder) Finished(product string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		product += ": failed"
	}
	r.finished = append(r.finished, product)
}

// wantError fails unless err has all the words; none means no error.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if len(words) == 0 {
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q lacks %q", err, word)
		}
	}
}
