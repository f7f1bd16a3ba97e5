package distribution

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hexOf is a SHA-256 of one repeated digit.
func hexOf(digit string) string { return strings.Repeat(digit, 64) }

func TestParsePackages(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []DebianPackage
		err  []string
	}{
		"none": {text: "# a comment\n"},
		"sorted by name": {
			text: "libc6 2.36-9+deb12u14 amd64 " + hexOf("b") + "\nadduser 3.134 all " + hexOf("a") + "\n",
			want: []DebianPackage{{"adduser", "3.134", "all", hexOf("a")}, {"libc6", "2.36-9+deb12u14", "amd64", hexOf("b")}},
		},
		"three fields": {text: "a 1 all\n", err: []string{`line "a 1 all" is not: name version`}},
		"no SHA-256":   {text: "a 1 all 0123\n", err: []string{`line "a 1 all 0123"`}},
		"twice":        {text: "a 1 all " + hexOf("a") + "\na 2 all " + hexOf("b") + "\n", err: []string{"package a is listed twice"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parsePackages(tc.text)
			wantError(t, err, tc.err...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("parsePackages() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiffPackages(t *testing.T) {
	locked := []DebianPackage{{"a", "1", "all", hexOf("a")}, {"b", "1", "amd64", hexOf("b")}}
	for name, tc := range map[string]struct {
		installed []DebianPackage
		want      []string
	}{
		"equal":              {locked, nil},
		"a newer version":    {[]DebianPackage{{"a", "2", "all", hexOf("c")}, locked[1]}, []string{"p: a 1 is now 2"}},
		"another archive":    {[]DebianPackage{{"a", "1", "all", hexOf("c")}, locked[1]}, []string{"p: a 1 has SHA-256 " + hexOf("c") + " instead of " + hexOf("a")}},
		"one more, one less": {[]DebianPackage{locked[0], {"c", "1", "all", hexOf("c")}}, []string{"p: c 1 is not in the lock file", "p: b 1 is not installed any more"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, u := range diffPackages("p", locked, tc.installed) {
				got = append(got, u.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("diffPackages() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckLock(t *testing.T) {
	installed := []DebianPackage{{"a", "1", "all", hexOf("a")}, {"b", "2", "amd64", hexOf("b")}}
	for name, tc := range map[string]struct {
		lock   string // none if empty
		policy LockPolicy
		want   []string // parts of the error
	}{
		"no lock file":                  {},
		"no lock file, required":        {policy: RequireLocked, want: []string{"tiny: a 1 is not in the lock file", "run: bin/distribution lock tiny"}},
		"equal, required":               {lock: "a 1 all " + hexOf("a") + "\nb 2 amd64 " + hexOf("b"), policy: RequireLocked},
		"newer":                         {lock: "a 1 all " + hexOf("a") + "\nb 1 amd64 " + hexOf("c")},
		"newer, required":               {lock: "a 1 all " + hexOf("a") + "\nb 1 amd64 " + hexOf("c"), policy: RequireLocked, want: []string{"tiny: b 1 is now 2"}},
		"another archive":               {lock: "a 1 all " + hexOf("d"), want: []string{"tiny: a 1 has SHA-256", "run: bin/distribution lock tiny"}},
		"another archive, to be locked": {lock: "a 1 all " + hexOf("d"), policy: ignoreLocks},
		"damaged lock file":             {lock: "a 1", want: []string{"debian-" + runtime.GOARCH + ".lock", `line "a 1"`}},
	} {
		t.Run(name, func(t *testing.T) {
			files := tiny()
			if tc.lock != "" {
				files["tiny/debian-"+runtime.GOARCH+".lock"] = tc.lock
			}
			d := open(t, checkout(t, files), t.TempDir())
			d.Locks = tc.policy
			v, err := d.resolve("tiny")
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, d.checkLock(v, installed), tc.want...)
		})
	}
}

// An artifact in the cache was built with packages that the lock file of now does not have.
func TestLocksOfCachedArtifacts(t *testing.T) {
	files := map[string]string{"root/product.yaml": `
description: A root file system
licenses: MIT
version: v1
debian: {suite: bookworm, variant: extract, refreshed: "2026-11-21", packages: [aa]}
`}
	root, cache := checkout(t, files), t.TempDir()
	d := open(t, root, cache)
	v, err := d.resolve("root")
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.locate(v)
	if err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(cache, "temp")
	write(t, filepath.Join(temp, "images", "index.json"), "{}")
	m := &manifest{Product: "root", Version: "v1", Key: a.Key, DebianPackages: []DebianPackage{{"aa", "2", "all", hexOf("a")}}}
	if err := publish(temp, a, m); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(root, "distribution/root/debian-"+runtime.GOARCH+".lock")
	write(t, lock, "aa 1 all "+hexOf("b")+"\n")

	if _, err := d.Build(t.Context(), nil, "root"); err != nil {
		t.Errorf("Build() = %v", err)
	}
	unlocked, err := d.Unlocked("root")
	if err != nil || len(unlocked) != 1 || unlocked[0].String() != "root: aa 1 is now 2" {
		t.Errorf("Unlocked() = %v, %v", unlocked, err)
	}
	d.Locks = RequireLocked
	_, err = d.Build(t.Context(), nil, "root")
	if refused := (*LockError)(nil); !errors.As(err, &refused) {
		t.Errorf("Build() = %v, want a *LockError", err)
	}

	written, err := d.Lock(t.Context(), nil, "root")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{lock}, written); diff != "" {
		t.Errorf("Lock() (-want +got):\n%s", diff)
	}
	if data, err := os.ReadFile(lock); err != nil || !strings.HasSuffix(string(data), "\naa 2 all "+hexOf("a")+"\n") {
		t.Errorf("the lock file is %q, %v", data, err)
	}
	if _, err := d.Build(t.Context(), nil, "root"); err != nil {
		t.Errorf("Build() with the new lock file = %v", err)
	}
}

// Every recipe with Debian packages has a lock file, which has at least the packages that the recipe names.
func TestRecipesAreLocked(t *testing.T) {
	d := open(t, filepath.Join("..", ".."), t.TempDir())
	for _, v := range d.variants() {
		if v.recipe.Debian == nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(v.dir, "debian-amd64.lock"))
		if err != nil {
			t.Error(err)
			continue
		}
		packages, err := parsePackages(string(data))
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		locked := map[string]bool{}
		for _, p := range packages {
			locked[p.Name] = true
		}
		for _, name := range v.recipe.Debian.Packages {
			if !locked[name] {
				t.Errorf("%s: package %s is not locked; run: bin/distribution lock %s", v.name, name, v.name)
			}
		}
	}
}
