package distribution

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModForVersion(t *testing.T) {
	const standard = `module example.com/distribution/a

go 1.26.0

require (
	example.com/a v1.36.3
	example.com/a/plugin v1.36.3
	example.com/api v0.36.3
	example.com/other v1.2.0
)

require example.com/indirect v1.9.0 // indirect

replace (
	example.com/api => example.com/api v0.36.3
	example.com/new => example.com/new v0.36.3
	example.com/other => example.com/fork v1.2.1
)
`
	const published = `module example.com/a

require example.com/api v0.0.0

replace (
	example.com/api => ./staging/src/example.com/api
	example.com/old => ./staging/src/example.com/old
	example.com/x => example.com/y v1.0.0
)
`
	const want = `module example.com/distribution/a

go 1.26.0

require (
	example.com/a v1.34.4
	example.com/a/plugin v1.34.4
	example.com/api v0.34.4
	example.com/other v1.2.0
)

replace (
	example.com/api => example.com/api v0.34.4
	example.com/other => example.com/fork v1.2.1
)

replace example.com/old => example.com/old v0.34.4
`
	got, err := modForVersion([]byte(standard), []byte(published), "example.com/a", "v1.34.4")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("modForVersion() (-want +got):\n%s", diff)
	}
}

// A module proxy is a directory here, with two versions of a module, and those of a staging module that belong to them.
func TestAddVersion(t *testing.T) {
	proxy, modules := t.TempDir(), t.TempDir()
	t.Cleanup(func() { // go makes its files read-only
		err := filepath.WalkDir(modules, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			return os.Chmod(path, 0o755) //nolint:gosec // a directory of this test
		})
		if err != nil {
			t.Error(err)
		}
	})
	for name, value := range map[string]string{"GOPROXY": "file://" + proxy, "GOSUMDB": "off", "GOMODCACHE": modules} {
		t.Setenv(name, value)
	}
	for _, patch := range []int{1, 2} {
		release(t, proxy, "example.com/a", fmt.Sprintf("v1.0.%d", patch), map[string]string{
			"go.mod": "module example.com/a\n\ngo 1.26.0\n\nrequire example.com/b v0.0.0\n\nreplace example.com/b => ./staging/src/example.com/b\n",
			"a.go":   "package a\n\nimport _ \"example.com/b\"\n",
		})
		release(t, proxy, "example.com/b", fmt.Sprintf("v0.0.%d", patch), map[string]string{"go.mod": "module example.com/b\n\ngo 1.26.0\n", "b.go": "package b\n"})
	}
	root := checkout(t, map[string]string{
		"a/product.yaml": "description: d\nlicenses: MIT\nmodule: example.com/a\n",
		"a/main.go":      "package main\n\nimport _ \"example.com/a\"\n\nfunc main() {}\n",
		"a/go.mod": "module main\n\ngo 1.26.0\n\nrequire example.com/a v1.0.2\n\nrequire example.com/b v0.0.2 // indirect\n\n" +
			"replace example.com/b => example.com/b v0.0.2\n",
		"plain/product.yaml": "description: d\nlicenses: MIT\nversion: v1\n",
	})
	for name, tc := range map[string]struct {
		product, version string
		want             []string
	}{
		"unknown product":  {"b", "v1.0.1", []string{`unknown product "b"`}},
		"no module":        {"plain", "v2.0.0", []string{"one version only"}},
		"no version":       {"a", "1.0.1", []string{`"1.0.1" is not a version such as v1.0.2`}},
		"standard version": {"a", "v1.0.2", []string{"has version v1.0.2 already", "go.mod"}},
		"not published":    {"a", "v1.0.3", []string{"download example.com/a v1.0.3", "go list -m -versions example.com/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, root, t.TempDir()).AddVersion(t.Context(), tc.product, tc.version, t.Output())
			wantError(t, err, tc.want...)
		})
	}
	t.Run("staging module not published", func(t *testing.T) {
		release(t, proxy, "example.com/a", "v1.0.4", map[string]string{
			"go.mod": "module example.com/a\n\ngo 1.26.0\n\nrequire example.com/b v0.0.0\n\nreplace example.com/b => ./staging/src/example.com/b\n",
			"a.go":   "package a\n\nimport _ \"example.com/b\"\n",
		})
		_, err := open(t, root, t.TempDir()).AddVersion(t.Context(), "a", "v1.0.4", t.Output())
		wantError(t, err, "tidy")
		if left, err := filepath.Glob(filepath.Join(root, "distribution/a/v*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	older, err := open(t, root, t.TempDir()).AddVersion(t.Context(), "a", "v1.0.1", t.Output())
	if err != nil || len(older) > 0 {
		t.Fatalf("AddVersion() = %v, %v", older, err)
	}
	text, err := os.ReadFile(filepath.Join(root, "distribution/a/v1.0.1.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"require example.com/a v1.0.1\n", "replace example.com/b => example.com/b v0.0.1\n"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("v1.0.1.mod lacks %q:\n%s", line, text)
		}
	}
	if !exists(filepath.Join(root, "distribution/a/v1.0.1.sum")) {
		t.Error("there is no v1.0.1.sum")
	}
	d := open(t, root, t.TempDir())
	if _, err := d.resolve("a@v1.0.1"); err != nil {
		t.Error(err)
	}
	release(t, proxy, "example.com/a", "v1.0.3", map[string]string{"go.mod": "module example.com/a\n\ngo 1.26.0\n", "a.go": "package a\n"})
	if older, err := d.AddVersion(t.Context(), "a", "v1.0.3", t.Output()); err != nil || !cmp.Equal(older, []string{"v1.0.1"}) {
		t.Errorf("AddVersion() = %v, %v", older, err)
	}
}

// release adds a version of a module to a directory that is a module proxy.
func release(t *testing.T, proxy, module, version string, files map[string]string) {
	t.Helper()
	file := filepath.Join(proxy, module, "@v", version)
	write(t, file+".mod", files["go.mod"])
	write(t, file+".info", fmt.Sprintf(`{"Version":%q}`, version))
	archive, err := os.Create(file + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(archive)
	for name, text := range files {
		entry, err := w.Create(module + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}
