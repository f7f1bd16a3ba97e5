package distribution

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

func TestParseRecipe(t *testing.T) {
	const head = "description: d\nlicenses: MIT\nversion: v1\n"
	for name, tc := range map[string]struct {
		text string
		want []string // parts of the error
	}{
		"smallest":                {head, nil},
		"not YAML":                {"a: [", []string{"yaml"}},
		"unknown key":             {head + "colour: red\n", []string{`unknown field "colour"`}},
		"unknown key, deeper":     {head + "images:\n- {repository: a.b/c, entrypoint: [x], shell: y}\n", []string{`unknown field "images[0].shell"`}},
		"wrong type":              {head + "binaries: x\n", []string{"binaries"}},
		"empty":                   {"{}", []string{"description: missing", "licenses: missing", "module: set exactly one of module and version"}},
		"module and version":      {head + "module: x\n", []string{"module: set exactly one"}},
		"binary without package":  {head + "binaries: [{name: a}]\n", []string{"binaries[0].package: missing"}},
		"binary with bad name":    {head + "binaries: [{name: ../a, package: .}]\n", []string{`binaries[0].name: "../a" is not a name`}},
		"name twice":              {head + "binaries: [{name: a, package: ., links: [b, a]}]\n", []string{`binaries[0].links[1]: duplicate name "a"`}},
		"bad template":            {head + "binaries: [{name: a, package: ., ldflags: ['{{.Nope}}']}]\n", []string{"binaries[0].ldflags[0]", "Nope"}},
		"relative directory":      {head + "binaries: [{name: a, package: ., dir: bin}]\n", []string{`binaries[0].dir: "bin" is not an absolute, clean path`}},
		"short image name":        {head + "images: [{repository: pause, entrypoint: [/pause]}]\n", []string{"images[0].repository", "not a full name"}},
		"image name with tag":     {head + "images: [{repository: 'a.b/c:1', entrypoint: [/pause]}]\n", []string{"images[0].repository"}},
		"image with a command":    {head + "images: [{repository: a.b/c, cmd: [sh]}]\n", nil},
		"image that runs nothing": {head + "images: [{repository: a.b/c}]\n", []string{"images[0].entrypoint: missing"}},
		"programs that are no links": {
			head + "binaries: [{name: a, package: ., links: [b]}]\nimages: [{repository: a.b/c, cmd: [b], programs: [a, b, b]}]\n",
			[]string{`images[0].programs[0]: "a" is no link`, `images[0].programs[2]: duplicate name "b"`},
		},
		"programs of some images": {
			head + "binaries: [{name: a, package: ., links: [b]}]\nimages: [{repository: a.b/c, cmd: [b], programs: [b]}, {repository: a.b/d, cmd: [b]}]\n",
			[]string{"images[1].programs: missing"},
		},
		"options as names of Debian": {
			head + "debian: {suite: --aptopt=x, variant: minbase, refreshed: \"2026-11-21\", packages: [a, ./evil.deb, \"?essential\", b/sid, c=1, --option]}\n",
			[]string{"debian.suite: ", `debian.packages[1]: "./evil.deb"`, "debian.packages[2]", "debian.packages[3]", "debian.packages[4]", "debian.packages[5]"},
		},
		"debian": {
			head + "debian: {variant: tiny, refreshed: today, versionOf: x}\n",
			[]string{"debian.suite: missing", `debian.variant: "tiny"`, "debian.packages: missing", `debian.refreshed: "today" is not a day`, `debian.versionOf: "x" is not in`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseRecipe([]byte(tc.text))
			wantError(t, err, tc.want...)
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	const recipe = "description: d\nlicenses: MIT\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"no recipe":       {nil, []string{"no recipe"}},
		"bad recipe":      {map[string]string{"a/product.yaml": "x: y"}, []string{"a/product.yaml", `unknown field "x"`}},
		"unknown product": {map[string]string{"a/product.yaml": recipe + "version: v1\ninclude: [{product: b}]"}, []string{"a/product.yaml", `product "b"`}},
		"circle": {map[string]string{
			"a/product.yaml": recipe + "version: v1\ninclude: [{product: b}]",
			"b/product.yaml": recipe + "version: v1\ninclude: [{product: a}]",
		}, []string{"a -> b -> a"}},
		"module not required": {map[string]string{"a/product.yaml": recipe + "module: m", "a/go.mod": "module a\n"}, []string{"go.mod", "does not require m"}},
		"mod file with another version": {map[string]string{
			"a/product.yaml": recipe + "module: example.com/m",
			"a/go.mod":       "module a\nrequire example.com/m v1.0.1\n", "a/v1.0.0.mod": "module a\nrequire example.com/m v1.0.2\n",
		}, []string{"v1.0.0.mod", "v1.0.2", "its name says v1.0.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(checkout(t, tc.files), t.TempDir())
			wantError(t, err, tc.want...)
		})
	}
}

func TestVersions(t *testing.T) {
	d := open(t, checkout(t, map[string]string{
		"a/product.yaml": "description: d\nlicenses: MIT\nmodule: example.com/m\n",
		"a/go.mod":       "module a\nrequire example.com/m v1.36.3\n",
		"a/v1.9.1.mod":   "module a\nrequire example.com/m v1.9.1\n",
		"a/v1.35.4.mod":  "module a\nrequire example.com/m v1.35.4\n",
	}), t.TempDir())
	if diff := cmp.Diff([]string{"v1.36.3", "v1.35.4", "v1.9.1"}, d.products["a"].versions()); diff != "" {
		t.Errorf("versions() (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		ref, want string
		err       []string
	}{
		"standard":        {ref: "a", want: "a@v1.36.3"},
		"exact":           {ref: "a@v1.35.4", want: "a@v1.35.4"},
		"without v":       {ref: "a@1.35.4", want: "a@v1.35.4"},
		"unknown version": {ref: "a@v2", err: []string{`no version "v2"`, "v1.36.3, v1.35.4"}},
		"unknown product": {ref: "b", err: []string{`unknown product "b"`, "there are: a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := d.resolve(tc.ref)
			wantError(t, err, tc.err...)
			if err == nil && got.ref() != tc.want {
				t.Errorf("resolve() = %s, want %s", got.ref(), tc.want)
			}
		})
	}
}

func TestValues(t *testing.T) {
	for version, want := range map[string]Values{
		"v1.36.3":      {"v1.36.3", "1.36.3", "1", "36", "3"},
		"3.10.2":       {"3.10.2", "3.10.2", "3", "10", "2"},
		"2.6":          {"2.6", "2.6", "2", "6", ""},
		"v1.37.0-rc.1": {"v1.37.0-rc.1", "1.37.0-rc.1", "1", "37", "0"},
	} {
		if diff := cmp.Diff(want, valuesFor(version)); diff != "" {
			t.Errorf("valuesFor(%q) (-want +got):\n%s", version, diff)
		}
	}
}

// The recipes of this repository, without building them.
func TestRepository(t *testing.T) {
	root, err := FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, root, t.TempDir())
	for _, v := range d.variants() {
		if v.modFile() != "" {
			if _, err := os.Stat(v.modFile()); err != nil {
				t.Errorf("%s: %v", v.ref(), err)
			}
		}
		seen := map[string]string{}
		for _, image := range v.recipe.Images {
			reference, err := image.reference(v.values())
			if err != nil {
				t.Errorf("%s: %v", v.ref(), err)
			}
			if other := seen[reference]; other != "" {
				t.Errorf("%s: image %s is also in %s", v.ref(), reference, other)
			}
			seen[reference] = v.ref()
		}
	}
	if _, err := FindRoot(filepath.Dir(root)); err == nil {
		t.Error("FindRoot() finds a checkout outside of one")
	}
}

// The version of Go that the checkout requires can build every product.
func TestProductsNeedNoNewerGo(t *testing.T) {
	root, err := FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	needed := func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modfile.ParseLax(file, data, nil)
		if err != nil || f.Go == nil {
			t.Fatalf("%s has no go line: %v", file, err)
		}
		return f.Go.Version
	}
	have := needed(filepath.Join(root, "go.mod"))
	for _, v := range open(t, root, t.TempDir()).variants() {
		if v.modFile() == "" {
			continue
		}
		if version := needed(v.modFile()); semver.Compare("v"+version, "v"+have) > 0 {
			t.Errorf("%s requires Go %s, and the go.mod of the checkout only %s", v.modFile(), version, have)
		}
	}
}
