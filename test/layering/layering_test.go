package layering

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "gardener.cloud/gardener"

func TestArrowsPointDown(t *testing.T) {
	used := make([]bool, len(exceptions))
	root := filepath.Join("..", "..")
	if mod, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("%s is not the root of module %s (%v)", root, module, err)
	}
	for _, i := range moduleImports(t, root) {
		reason := check(i.from, i.to)
		if reason == "" {
			continue
		}
		at := slices.IndexFunc(exceptions, func(e exception) bool { return e.covers(i.from, i.to) })
		if at < 0 {
			t.Error(reason)
			continue
		}
		used[at] = true
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("exception %s -> %s matches no import; remove it", e.from, e.to)
		}
		if e.why == "" {
			t.Errorf("exception %s -> %s has no reason", e.from, e.to)
		}
	}
}

// provider-hosts is an extension as an author outside of this repository writes it.
func TestProviderHostsUsesTheLibraryOnly(t *testing.T) {
	found := false
	for _, i := range moduleImports(t, filepath.Join("..", "..")) {
		if !strings.HasPrefix(i.from, "internal/provider/hosts") {
			continue
		}
		found = true
		if strings.HasPrefix(i.to, "internal/") && !strings.HasPrefix(i.to, "internal/provider/hosts") {
			t.Errorf("%s imports %s, which is not in the library", i.from, i.to)
		}
	}
	if !found {
		t.Error("there is no provider-hosts")
	}
}

type edge struct {
	from, to string
}

// moduleImports returns the imports within the module at root, without those of tests and nested modules. It reads the
// files instead of running `go list`, because go test tracks which files a test has opened: it runs this one again
// after a change, and uses the cached result otherwise.
func moduleImports(t *testing.T, root string) []edge {
	t.Helper()
	var edges []edge
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDir(root, path)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if to, ok := strings.CutPrefix(imported, module+"/"); ok {
				edges = append(edges, edge{from: filepath.ToSlash(dir), to: to})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return edges
}

func skipDir(root, path string) error {
	if path == root {
		return nil
	}
	name := filepath.Base(path)
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     string
	}{
		"a main wires a process":               {from: "cmd/gardener", to: "internal/gardenlet"},
		"a main runs the landscape":            {from: "cmd/landscape", to: "landscape"},
		"a process deploys a component":        {from: "internal/gardenlet/shoot/flow", to: "internal/component/coredns"},
		"a process validates":                  {from: "internal/apiserver/registry/core/shoot", to: "internal/validation/core"},
		"a process uses its own packages":      {from: "internal/gardenlet/shoot", to: "internal/gardenlet/seed"},
		"the landscape deploys a component":    {from: "landscape/garden", to: "internal/component/etcd"},
		"a component applies":                  {from: "internal/component/etcd", to: "internal/kube"},
		"a component looks an image up":        {from: "internal/component/etcd", to: "imagevector"},
		"a provider uses the library":          {from: "internal/provider/local/worker", to: "pkg/extension/worker"},
		"the library uses the API":             {from: "pkg/extension", to: "api/extensions/v1alpha1"},
		"the API uses the API":                 {from: "api/seedmanagement/v1alpha1", to: "api/core/v1beta1"},
		"a test environment starts everything": {from: "test/env", to: "internal/apiserver"},
		"a tool reads types":                   {from: "hack/docs", to: "api/core/v1beta1"},
		"the API uses the library":             {from: "api/core/v1beta1", to: "pkg/flow", want: "api/core/v1beta1 imports pkg/flow: api lies below pkg"},
		"the API looks an image up":            {from: "api/core/v1beta1", to: "imagevector", want: "api/core/v1beta1 imports imagevector: api lies below imagevector"},
		"the image vector uses the library":    {from: "imagevector", to: "pkg/flow", want: "imagevector imports pkg/flow: imagevector lies below pkg"},
		"the library uses internal code":       {from: "pkg/extension", to: "internal/kube", want: "pkg/extension imports internal/kube: pkg lies below internal/kube"},
		"a component uses a process":           {from: "internal/component/etcd", to: "internal/etcddruid/etcd", want: "internal/component/etcd imports internal/etcddruid/etcd: internal/component lies below internal/etcddruid"},
		"a process uses another":               {from: "internal/operator/garden", to: "internal/gardenlet/seed", want: "internal/operator/garden imports internal/gardenlet/seed: two processes never import each other; move shared code further down"},
		"an undeclared area is a process":      {from: "internal/gardenlet", to: "internal/helper", want: "internal/gardenlet imports internal/helper: two processes never import each other; move shared code further down"},
		"a provider uses another":              {from: "internal/provider/local", to: "internal/provider/other", want: "internal/provider/local imports internal/provider/other: two processes never import each other; move shared code further down"},
		"the landscape uses a process":         {from: "landscape", to: "internal/gardenlet", want: "landscape imports internal/gardenlet: two processes never import each other; move shared code further down"},
		"a process uses the landscape":         {from: "internal/gardenlet", to: "landscape/machine", want: "internal/gardenlet imports landscape/machine: two processes never import each other; move shared code further down"},
		"a process uses a main":                {from: "internal/gardenlet", to: "cmd/gardener", want: "internal/gardenlet imports cmd/gardener: internal/gardenlet lies below cmd"},
		"product code uses a test environment": {from: "cmd/gardener", to: "test/env", want: "cmd/gardener imports test/env: nothing that is shipped uses test/"},
		"an unknown directory imports":         {from: "misc", to: "api/core/v1beta1", want: "misc: unknown directory; add it to areaOf"},
		"an unknown directory is imported":     {from: "cmd/gardener", to: "misc", want: "misc: unknown directory; add it to areaOf"},
		"code directly under internal":         {from: "internal", to: "api/core/v1beta1", want: "internal: code under internal/ is in a directory of its own, such as internal/gardenlet"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, check(tc.from, tc.to)); diff != "" {
				t.Errorf("check(%q, %q) (-want +got):\n%s", tc.from, tc.to, diff)
			}
		})
	}
}

func TestExceptionCovers(t *testing.T) {
	e := exception{from: "internal/component", to: "internal/gardenlet/seed", why: "only a test"}
	for name, tc := range map[string]struct {
		from, to string
		want     bool
	}{
		"the directories":          {from: "internal/component", to: "internal/gardenlet/seed", want: true},
		"packages in them":         {from: "internal/component/etcd", to: "internal/gardenlet/seed/care", want: true},
		"a package beside":         {from: "internal/component/etcd", to: "internal/gardenlet/shoot"},
		"a name that only begins":  {from: "internal/components", to: "internal/gardenlet/seed"},
		"the other way round":      {from: "internal/gardenlet/seed", to: "internal/component"},
		"the imported only begins": {from: "internal/component", to: "internal/gardenlet/seeds"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := e.covers(tc.from, tc.to); got != tc.want {
				t.Errorf("covers(%q, %q) = %v, want %v", tc.from, tc.to, got, tc.want)
			}
		})
	}
}

func TestModuleImports(t *testing.T) {
	root := t.TempDir()
	for path, content := range map[string]string{
		"go.mod":                   "module " + module,
		"pkg/a/a.go":               "package a\nimport (\n\t\"fmt\"\n\t\"" + module + "/api/x\"\n)\n",
		"pkg/a/a_test.go":          "package a\nimport _ \"" + module + "/test/env\"\n",
		"pkg/a/linux.go":           "//go:build plan9\n\npackage a\nimport _ \"" + module + "/api/y\"\n",
		"pkg/a/testdata/t.go":      "package t\nimport _ \"" + module + "/api/z\"\n",
		"distribution/p/go.mod":    "module p",
		"distribution/p/main.go":   "package main\nimport _ \"" + module + "/api/z\"\n",
		".artifacts/src/main.go":   "package main\nimport _ \"" + module + "/api/z\"\n",
		"web/node_modules/m/go.go": "package m\nimport _ \"" + module + "/api/z\"\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []edge{{"pkg/a", "api/x"}, {"pkg/a", "api/y"}}
	if diff := cmp.Diff(want, moduleImports(t, root), cmp.AllowUnexported(edge{})); diff != "" {
		t.Errorf("moduleImports() (-want +got):\n%s", diff)
	}
}
