package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run executes a command line on a checkout with one product, and returns what it writes.
func run(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                          "module gardener.cloud/gardener\n",
		"distribution/empty/product.yaml": "description: Nothing at all\nlicenses: MIT\nversion: v1.0.0\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var o, e strings.Builder
	cmd := newCommand(strings.NewReader(""), &o, &e)
	cmd.SetArgs(append([]string{"--root", root, "--cache", filepath.Join(root, "cache")}, args...))
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

func TestCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		args             []string
		out, errOut, err string // parts of each
	}{
		"help":                 {args: nil, out: "Examples:\n  distribution build"},
		"build":                {args: []string{"build"}, errOut: "built 1 of 1 products"},
		"build the unknown":    {args: []string{"build", "x"}, err: `unknown product "x"; there are: empty`},
		"build a version":      {args: []string{"build", "empty@v2"}, err: `product empty has no version "v2"; there are: v1.0.0`},
		"build all and some":   {args: []string{"build", "--all", "empty"}, err: "not both"},
		"build for both":       {args: []string{"build", "--arch", "amd64,arm64"}, errOut: "built 1 of 1 products for arm64"},
		"build for another":    {args: []string{"build", "--arch", "s390x"}, err: `--arch: unknown architecture "s390x"; there are: amd64, arm64`},
		"list":                 {args: []string{"list"}, out: "empty     v1.0.0"},
		"list for both":        {args: []string{"list", "--arch", "amd64,arm64"}, err: "--arch: name one architecture, not amd64,arm64"},
		"list as JSON":         {args: []string{"list", "-o", "json"}, out: `"description": "Nothing at all"`},
		"list as YAML":         {args: []string{"list", "-o", "yaml"}, out: "cached: false"},
		"list, wide":           {args: []string{"list", "-o", "wide"}, out: "Nothing at all"},
		"list, unknown format": {args: []string{"list", "-o", "xml"}, err: `unknown output format "xml"; there are: json, yaml, wide`},
		"path of the unbuilt":  {args: []string{"path", "empty"}, err: "empty is not built; run: bin/distribution build empty"},
		"images of nothing":    {args: []string{"images", "-o", "json"}, out: "[]"},
		"images, unbuilt":      {args: []string{"images", "empty"}, err: "empty is not built"},
		"push to nowhere":      {args: []string{"push"}, err: "requires at least 1 arg"},
		"push a version":       {args: []string{"push", "localhost:1"}, err: "name the version with --version"},
		"push, unbuilt":        {args: []string{"push", "localhost:1", "empty", "--version", "v1"}, err: "empty is not built; run: bin/distribution build empty"},
		"prune nothing":        {args: []string{"prune"}, errOut: "nothing to remove"},
		"version":              {args: []string{"version"}, out: "distribution version add kubernetes v1.35.5"},
		"version of no module": {args: []string{"version", "add", "empty", "v2.0.0"}, err: "product empty has one version only"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := run(t, tc.args...)
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("error: %v", err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("error: %v, want %q", err, tc.err)
			}
			if !strings.Contains(out, tc.out) {
				t.Errorf("output lacks %q:\n%s", tc.out, out)
			}
			if !strings.Contains(errOut, tc.errOut) {
				t.Errorf("messages lack %q:\n%s", tc.errOut, errOut)
			}
		})
	}
}

func TestHelpOpensWithAnExample(t *testing.T) {
	for _, cmd := range append(newCommand(nil, nil, nil).Commands(), newCommand(nil, nil, nil)) {
		if !strings.HasPrefix(cmd.Long, "Examples:\n  distribution ") {
			t.Errorf("%s --help opens with %.40q", cmd.Name(), cmd.Long)
		}
	}
}

func TestPruneAsks(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(root, "go.mod"):                          "module gardener.cloud/gardener\n",
		filepath.Join(root, "distribution/empty/product.yaml"): "description: Nothing\nlicenses: MIT\nversion: v1\n",
		filepath.Join(cache, "old-v1-0123456789abcdef/x"):      "x",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args []string
		err  string
		left int
	}{
		{[]string{"prune"}, "run: distribution prune --yes", 1},
		{[]string{"prune", "--yes"}, "", 0},
	} {
		var out, errOut strings.Builder
		cmd := newCommand(strings.NewReader("y\n"), &out, &errOut)
		cmd.SetArgs(append([]string{"--root", root, "--cache", cache}, tc.args...))
		err := cmd.ExecuteContext(t.Context())
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%v: %v, want %q", tc.args, err, tc.err)
		}
		left, globErr := filepath.Glob(filepath.Join(cache, "old-*"))
		if globErr != nil || len(left) != tc.left {
			t.Errorf("%v leaves %v, %v", tc.args, left, globErr)
		}
	}
}
