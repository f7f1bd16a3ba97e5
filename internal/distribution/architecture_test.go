package distribution

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"gardener.cloud/gardener/imagevector"
)

// other is the architecture that is not that of this machine.
func other() string {
	return Architectures[(slices.Index(Architectures, runtime.GOARCH)+1)%len(Architectures)]
}

func forOther(t *testing.T, d *Distribution) *Distribution {
	t.Helper()
	of, err := d.For(other())
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func TestBuildForAnotherArchitecture(t *testing.T) {
	d := open(t, checkout(t, tiny()), t.TempDir())
	built, err := d.Build(t.Context(), nil, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	of := forOther(t, d)
	_, err = of.Artifact("tiny")
	wantError(t, err, "tiny is not built; run: bin/distribution build --arch "+other()+" tiny")
	foreign, err := of.Build(t.Context(), nil, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	for architecture, a := range map[string]*Artifact{runtime.GOARCH: built[0], other(): foreign[0]} {
		program, err := elf.Open(filepath.Join(a.Dir, "bin", "tiny"))
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close() //nolint:errcheck // it was only read
		if program.Machine != machines[architecture] {
			t.Errorf("the program for %s is one for %s", architecture, program.Machine)
		}
		images, err := a.Images()
		if err != nil {
			t.Fatal(err)
		}
		image, err := images[0].Load()
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.OS != "linux" || config.Architecture != architecture {
			t.Errorf("the image for %s has the configuration %+v, %v", architecture, config, err)
		}
	}
	if garbage, err := d.Garbage(); err != nil || len(garbage) > 0 {
		t.Errorf("garbage: %v, %v", garbage, err)
	}
	_, err = d.For("s390x")
	wantError(t, err, `unknown architecture "s390x"; there are: amd64, arm64`)
}

func TestNativeOnly(t *testing.T) {
	const head = "description: A product\nlicenses: MIT\nversion: v1\n"
	const debian = "debian:\n  suite: bookworm\n  refreshed: \"2026-11-21\"\n  packages: [base-files]\n  variant: "
	d := open(t, checkout(t, map[string]string{
		"unpacked/product.yaml": head + debian + "extract\n",
		"system/product.yaml":   head + debian + "minbase\n",
		"c/product.yaml":        head + "binaries:\n- name: c\n  package: .\n  cgo: true\n",
		"c/go.mod":              "module example.com/c\n\ngo 1.26.0\n",
		"user/product.yaml":     head + "include:\n- product: c\nimages:\n- repository: example.com/user\n  entrypoint: [/c]\n",
		"stated/product.yaml":   head + "nativeOnly: its setup runs a program\n" + debian + "extract\n",
	}), t.TempDir())
	if got := d.NativeOnly(); got != nil {
		t.Errorf("this machine cannot build %v for itself", got)
	}
	of := forOther(t, d)
	if diff := cmp.Diff([]NativeOnly{
		{"c", "c is written in C in part"},
		{"stated", "its setup runs a program"},
		{"system", "installing its Debian packages runs programs of them"},
		{"user", "it contains c: c is written in C in part"},
	}, of.NativeOnly()); diff != "" {
		t.Errorf("products for machines of the architecture only (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"unpacked"}, of.Default()); diff != "" {
		t.Errorf("what is built without names (-want +got):\n%s", diff)
	}
	_, err := of.Build(t.Context(), nil, "user")
	wantError(t, err, "user for "+other()+" cannot be built on a machine of another architecture: it contains c: c is written in C in part")
}

// The reason is not part of what is built, so that stating it builds nothing again.
func TestNativeOnlyIsNotInKeys(t *testing.T) {
	const recipe = "description: A product\nlicenses: MIT\nversion: v1\n"
	keys := map[string]bool{}
	for _, text := range []string{recipe, recipe + "nativeOnly: its setup runs a program\n"} {
		d := open(t, checkout(t, map[string]string{"a/product.yaml": text}), t.TempDir())
		v, err := d.resolve("a")
		if err != nil {
			t.Fatal(err)
		}
		key, err := d.key(v)
		if err != nil {
			t.Fatal(err)
		}
		keys[key] = true
	}
	if len(keys) != 1 {
		t.Errorf("keys: %v", keys)
	}
}

func TestAptSourcesOfAnArchitecture(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sources.list"), `deb http://all.example.com/debian bookworm main
deb [arch=amd64] http://amd64.example.com/debian bookworm main
deb [signed-by=/k.gpg arch=arm64,amd64] http://both.example.com/debian bookworm main
`)
	write(t, filepath.Join(dir, "sources.list.d", "debian.sources"), `Types: deb
URIs: http://security.example.com/debian-security
Suites: bookworm-security
Components: main
Architectures: amd64
`)
	for architecture, want := range map[string]int{"amd64": 4, "arm64": 2} {
		got, err := aptSources(dir, "bookworm", architecture)
		if err != nil || strings.Count(got, "\n") != want {
			t.Errorf("aptSources() for %s = %v, want %d:\n%s", architecture, err, want, got)
		}
	}
}

// pushBoth has the products of newPushTest for both architectures, and one that is for this machine only.
func pushBoth(t *testing.T) *pushTest {
	t.Helper()
	p := newPushTest(t)
	write(t, filepath.Join(p.d.root, "distribution", "native", "product.yaml"),
		"description: For this machine\nlicenses: MIT\nversion: v1\nnativeOnly: it says so\nimages:\n- repository: example.com/native\n  entrypoint: [/x]\n")
	write(t, filepath.Join(p.d.root, "distribution", "native", "files", "x"), "x\n")
	write(t, filepath.Join(p.d.root, "bin", other(), "gardener"), "#!/bin/sh\n# another\n")
	p.d = open(t, p.d.root, p.d.cache)
	if _, err := p.d.Build(t.Context(), nil, "native"); err != nil {
		t.Fatal(err)
	}
	if _, err := forOther(t, p.d).Build(t.Context(), nil, "tiny", "base"); err != nil {
		t.Fatal(err)
	}
	p.push.Executable, p.push.Architectures = "", []string{"arm64", "amd64"}
	return p
}

func TestPushForSeveralArchitectures(t *testing.T) {
	p := pushBoth(t)
	pushed, missing, err := p.d.Push(t.Context(), p.push)
	if err != nil {
		t.Fatal(err)
	}
	want := []Missing{{Product: "missing", Architecture: "amd64"}, {Product: "missing", Architecture: "arm64"}, {"native", other(), "it says so"}}
	if diff := cmp.Diff(want, missing, cmp.Transformer("sorted", func(m []Missing) map[Missing]bool {
		set := map[Missing]bool{}
		for _, one := range m {
			set[one] = true
		}
		return set
	})); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	const gardener = "registry.local.gardener.cloud/gardener/gardener"
	for _, ref := range []string{"example.com/tiny:v1.2.3", gardener + ":v1.2.3"} {
		index, err := remote.Index(p.reference(t, ref))
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var architectures []string
		for _, m := range manifest.Manifests {
			architectures = append(architectures, m.Platform.Architecture)
			referrers, err := remote.Referrers(p.reference(t, ref).Context().Digest(m.Digest.String()))
			if err != nil {
				t.Fatal(err)
			}
			if list, err := referrers.IndexManifest(); err != nil || len(list.Manifests) != 2 {
				t.Errorf("%s for %s has the referrers %v, %v", ref, m.Platform, list, err)
			}
			image, err := remote.Image(p.reference(t, ref), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: m.Platform.Architecture}))
			if err != nil {
				t.Fatal(err)
			}
			if config, err := image.ConfigFile(); err != nil || config.Architecture != m.Platform.Architecture {
				t.Errorf("%s for %s has the configuration %+v, %v", ref, m.Platform, config, err)
			}
		}
		if diff := cmp.Diff([]string{"amd64", "arm64"}, architectures); diff != "" {
			t.Errorf("%s is for (-want +got):\n%s", ref, diff)
		}
	}
	found, err := pushed.Images.Find("gardener", imagevector.Query{Architecture: "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Head(p.reference(t, gardener+":v1.2.3"))
	if err != nil || !strings.HasSuffix(found.String(), "@"+index.Digest.String()) || !index.MediaType.IsIndex() {
		t.Errorf("the image vector has %s, the registry %v, %v", found, index, err)
	}
	if native, err := remote.Head(p.reference(t, "example.com/native:v1")); err != nil || !native.MediaType.IsImage() {
		t.Errorf("the image for one architecture is %v, %v", native, err)
	}
	before := p.writes.Load()
	p.push.Architectures = []string{"amd64", "arm64", "amd64"}
	if _, _, err := p.d.Push(t.Context(), p.push); err != nil {
		t.Fatal(err)
	}
	if after := p.writes.Load(); after != before {
		t.Errorf("the second push wrote %d times:\n%s", after-before, p.progress.String())
	}
}

// An image whose program is for another architecture than the image says would fail on nodes only.
func TestPushRefusesAnExecutableOfAnotherArchitecture(t *testing.T) {
	p := pushBoth(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.push.Executable = self
	_, _, err = p.d.Push(t.Context(), p.push)
	wantError(t, err, "is not for "+other(), "build it with: make build-"+other())
	if p.writes.Load() > 0 {
		t.Error("something was pushed")
	}
	p.push.Executable = ""
	if err := os.Remove(filepath.Join(p.d.root, "bin", other(), "gardener")); err != nil {
		t.Fatal(err)
	}
	_, _, err = p.d.Push(t.Context(), p.push)
	wantError(t, err, "build it with: make build-"+other())
}
