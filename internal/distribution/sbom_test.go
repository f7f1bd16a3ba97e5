package distribution

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

func TestBillOfMaterials(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8 X:nodwarf5", Main: debug.Module{Path: "example.com/main", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "k8s.io/api", Version: "v0.36.3"}},
			{Path: "github.com/Masterminds/semver/v3", Version: "v3.4.0+incompatible"},
		},
	}
	bom := billOfMaterials("example.com/a:v1", "sha256:"+hexOf("1"), contents{
		packages: []suitePackage{{DebianPackage{"libssl3", "1:3.0.22~deb12u2+b1", "amd64", hexOf("2")}, "bookworm"}},
		programs: []program{
			{path: "/usr/bin/a", version: "v1", sha256: hexOf("3"), info: info},
			{path: "/usr/bin/b", version: "v2", sha256: hexOf("4"), info: info},
			{path: "/usr/bin/script", version: "v1", sha256: hexOf("5")},
		},
	})
	if got := bom.Metadata.Component; got.Name != "example.com/a" || got.Version != "v1" || (*got.Hashes)[0].Value != hexOf("1") {
		t.Errorf("the component is %+v", got)
	}
	var refs []string
	for _, c := range *bom.Components {
		refs = append(refs, c.BOMRef)
	}
	want := []string{
		"file:/usr/bin/a", "file:/usr/bin/b", "file:/usr/bin/script",
		"pkg:deb/debian/libssl3@1:3.0.22~deb12u2%2Bb1?arch=amd64&distro=bookworm",
		"pkg:golang/example.com/main", "pkg:golang/github.com/Masterminds/semver/v3@v3.4.0%2Bincompatible", "pkg:golang/k8s.io/api@v0.36.3",
		"pkg:golang/std@1.26.8",
	}
	if diff := cmp.Diff(want, refs); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	depends := map[string][]string{}
	for _, d := range *bom.Dependencies {
		depends[d.Ref] = *d.Dependencies
	}
	if diff := cmp.Diff(map[string][]string{"image": want[:4], "file:/usr/bin/a": want[4:], "file:/usr/bin/b": want[4:]}, depends); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
}

// The SBOM of a built image lists the binaries of the layers below, of included products, and their modules.
func TestSBOMOfImage(t *testing.T) {
	root, cache := checkout(t, two()), t.TempDir()
	d := open(t, root, cache)
	artifacts, err := d.Build(t.Context(), nil, "upper")
	if err != nil {
		t.Fatal(err)
	}
	image, err := d.Image("example.com/upper:2")
	if err != nil {
		t.Fatal(err)
	}
	read := func() (string, *cdx.BOM) {
		t.Helper()
		data, err := os.ReadFile(image.SBOM())
		if err != nil {
			t.Fatal(err)
		}
		bom := &cdx.BOM{}
		if err := cdx.NewBOMDecoder(strings.NewReader(string(data)), cdx.BOMFileFormatJSON).Decode(bom); err != nil {
			t.Fatal(err)
		}
		return string(data), bom
	}
	first, bom := read()
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"opt/tiny", "usr/local/bin/tiny", "example.com/tiny", "std"}, names); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	if got := "sha256:" + (*bom.Metadata.Component.Hashes)[0].Value; got != image.Digest {
		t.Errorf("SBOM is for %s, the image is %s", got, image.Digest)
	}

	// An artifact without it is built again, and the same inputs have the same SBOM.
	if err := os.Remove(image.SBOM()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Artifact("upper"); err == nil {
		t.Error("an artifact without SBOM is complete")
	}
	if _, err := d.Build(t.Context(), nil, "upper"); err != nil {
		t.Fatal(err)
	}
	if second, _ := read(); second != first {
		t.Error("the second build has another SBOM")
	}

	_, err = d.Image("example.com/lower:1")
	wantError(t, err, `no built image has the reference "example.com/lower:1"`)

	wrapped, err := d.Wrap(t.TempDir(), artifacts[0], "example.com/program", os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(wrapped.SBOM())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"file:/opt/tiny", "file:/usr/local/bin/" + filepath.Base(os.Args[0]), "pkg:golang/std@"} {
		if !strings.Contains(string(data), `"bom-ref": "`+want) {
			t.Errorf("SBOM of a wrapped executable lacks %s:\n%.1000s", want, data)
		}
	}
}
