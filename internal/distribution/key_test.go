package distribution

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyOfInputs(t *testing.T) {
	one := inputs{"a": "1", "b": "2"}
	two := inputs{}
	for _, name := range []string{"b", "a"} {
		two[name] = one[name]
	}
	if one.key() != two.key() {
		t.Error("the order of inputs matters")
	}
	for name, other := range map[string]inputs{
		"another value":   {"a": "1", "b": "3"},
		"another name":    {"a": "1", "c": "2"},
		"one less":        {"a": "1"},
		"one more":        {"a": "1", "b": "2", "c": ""},
		"shifted border":  {"a": "1", "b=": "2"},
		"swapped":         {"a": "2", "b": "1"},
		"lines in values": {"a": "1\n1:b=1:2"},
	} {
		if one.key() == other.key() {
			t.Errorf("%s: same key", name)
		}
	}
}

func TestKeyOfProduct(t *testing.T) {
	files := tiny()
	files["tiny/go.sum"] = ""
	files["upper/product.yaml"] = "description: d\nlicenses: MIT\nversion: v1\ninclude: [{product: tiny}]\n"
	keys := func(t *testing.T, root string) (string, string) {
		t.Helper()
		d := open(t, root, t.TempDir())
		var keys []string
		for _, ref := range []string{"tiny", "upper"} {
			v, err := d.resolve(ref)
			if err != nil {
				t.Fatal(err)
			}
			key, err := d.key(v)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		return keys[0], keys[1]
	}
	tinyKey, upperKey := keys(t, checkout(t, files))
	add := func(name, text string) func(string) {
		return func(root string) {
			path := filepath.Join(root, "distribution", "tiny", name)
			old, err := os.ReadFile(path)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			write(t, path, string(old)+text)
		}
	}
	for name, tc := range map[string]struct {
		change func(root string)
		same   bool
	}{
		"nothing":             {func(string) {}, true},
		"a comment":           {add("product.yaml", "# said\n"), true},
		"a test":              {add("main_test.go", "package main\n"), true},
		"a readme":            {add("README.md", "hello\n"), true},
		"the recipe":          {add("product.yaml", "optional: true\n"), false},
		"the source":          {add("main.go", "// more\n"), false},
		"a new source":        {add("more.go", "package main\n"), false},
		"the mod file":        {add("go.mod", "// more\n"), false},
		"the sums":            {add("go.sum", "x v1 h1:y\n"), false},
		"a file of the image": {add("files/etc/x", "y\n"), false},
		"a new file":          {add("files/etc/y", "y\n"), false},
		"the mode of a file": {func(root string) {
			if err := os.Chmod(filepath.Join(root, "distribution/tiny/files/etc/x"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a mode that git forgets": {func(root string) {
			if err := os.Chmod(filepath.Join(root, "distribution/tiny/files/etc/x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			root := checkout(t, maps.Clone(files))
			tc.change(root)
			gotTiny, gotUpper := keys(t, root)
			if (gotTiny == tinyKey) != tc.same {
				t.Errorf("same key: %v, want %v", gotTiny == tinyKey, tc.same)
			}
			if (gotUpper == upperKey) != tc.same {
				t.Errorf("same key of the product built on it: %v, want %v", gotUpper == upperKey, tc.same)
			}
		})
	}
}

// A product that is built from another module of the repository would stay as it is, although that has changed.
func TestKeyHasLocalModules(t *testing.T) {
	files := tiny()
	files["tiny/go.mod"] = "module example.com/tiny\n\ngo 1.26.0\n\nrequire example.com/lower v0.0.0\n\nreplace example.com/lower => ../lower\n"
	files["tiny/main.go"] = "package main\n\nimport \"example.com/lower/used\"\n\nfunc main() { used.F() }\n"
	root := checkout(t, files)
	lower := func(name, text string) { write(t, filepath.Join(root, "distribution", "lower", name), text) }
	lower("go.mod", "module example.com/lower\n\ngo 1.26.0\n")
	lower("used/used.go", "package used\n\nfunc F() {}\n")
	lower("unused/unused.go", "package unused\n")
	key := func() string {
		t.Helper()
		d := open(t, root, t.TempDir())
		v, err := d.resolve("tiny")
		if err != nil {
			t.Fatal(err)
		}
		key, err := d.key(v)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	before := key()
	lower("unused/unused.go", "package unused\n\n// More.\n")
	if key() != before {
		t.Error("a package that it does not use changes the key")
	}
	lower("used/used.go", "package used\n\n// F does more.\nfunc F() {}\n")
	if key() == before {
		t.Error("a package that it uses does not change the key")
	}
}

func TestKeyNeedsHostPackages(t *testing.T) {
	files := map[string]string{"a/product.yaml": "description: d\nlicenses: MIT\nversion: v1\nhostPackages: [libfoo-dev]\n"}
	root := checkout(t, files)
	var keys []string
	for _, version := range []string{"1.0", "1.1"} {
		d := open(t, root, t.TempDir())
		d.host.packages = map[string]string{"libfoo-dev": version}
		v, err := d.resolve("a")
		if err != nil {
			t.Fatal(err)
		}
		key, err := d.key(v)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if keys[0] == keys[1] {
		t.Error("the version of a C library does not change the key")
	}
	d := open(t, root, t.TempDir())
	d.host.packages = map[string]string{"libfoo-dev": ""}
	_, err := d.Build(t.Context(), nil, "a")
	wantError(t, err, "apt-get install libfoo-dev")
	if left, _ := os.ReadDir(d.cache); len(left) > 0 {
		t.Errorf("work was started: %v", left)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("not one sentence: %q", err)
	}
}

// Two modules may be built by different versions of Go, independent of the working directory.
func TestGoVersionOfModule(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\nsed -n 's/^go /go/p' go.mod\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	var host hostFacts
	for _, version := range []string{"1.90.1", "1.90.2", "1.90.1"} {
		modFile := filepath.Join(dir, version, "go.mod")
		write(t, modFile, "module a\n\ngo "+version+"\n")
		if got, err := host.goVersion(modFile); err != nil || got != "go"+version {
			t.Errorf("goVersion(%s) = %q, %v", modFile, got, err)
		}
	}
}
