package distribution

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	packageurl "github.com/package-url/packageurl-go"
)

// contents are what an image is made of.
type contents struct {
	packages []suitePackage
	programs []program
}

// suitePackage is a Debian package with the suite that it was taken from.
type suitePackage struct {
	DebianPackage
	suite string
}

// program is a binary with its path in the image. Those that were not built from Go modules have no info.
type program struct {
	path    string
	version string // of its product
	sha256  string
	info    *debug.BuildInfo
}

// add returns all contents of two parts of an image.
func (c contents) add(other contents) contents {
	return contents{slices.Concat(c.packages, other.packages), slices.Concat(c.programs, other.programs)}
}

// readProgram reads the modules of an executable, which is at target in the image.
func readProgram(file, target, version string) (program, error) {
	described, err := describeFile(filepath.Split(file))
	if err != nil {
		return program{}, err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		info = nil // a script
	}
	return program{path: target, version: version, sha256: described.SHA256, info: info}, nil
}

// contents are those of the layers of a variant's own, by its manifest and the binaries in bin.
func (d *Distribution) contents(v variant, m *manifest, bin string) (contents, error) {
	var c contents
	if recipe := v.recipe.Debian; recipe != nil {
		for _, p := range m.DebianPackages {
			// Of a few files that are kept, none is from a dependency.
			if len(recipe.Keep) == 0 || slices.Contains(recipe.Packages, p.Name) {
				c.packages = append(c.packages, suitePackage{p, recipe.Suite})
			}
		}
	}
	for _, include := range v.recipe.Include {
		a, err := d.Artifact(include.Product)
		if err != nil {
			return contents{}, err
		}
		used, err := a.manifest()
		if err != nil {
			return contents{}, err
		}
		for _, f := range used.Bin {
			p, err := readProgram(filepath.Join(a.Dir, "bin", f.Name), path.Join(include.dir(), f.Name), a.Version)
			if err != nil {
				return contents{}, err
			}
			c.programs = append(c.programs, p)
		}
	}
	for _, binary := range v.recipe.Binaries {
		p, err := readProgram(filepath.Join(bin, binary.Name), path.Join(binary.dir(), binary.Name), v.version)
		if err != nil {
			return contents{}, err
		}
		c.programs = append(c.programs, p)
	}
	return c, nil
}

// artifactContents are those of the layers that an artifact gives to images of other products.
func (d *Distribution) artifactContents(a *Artifact) (contents, error) {
	v, err := d.resolve(a.Product + "@" + a.Version)
	if err != nil {
		return contents{}, err
	}
	m, err := a.manifest()
	if err != nil {
		return contents{}, err
	}
	return d.contents(v, m, filepath.Join(a.Dir, "bin"))
}

// sboms writes the SBOM of each image of a build.
func (b *build) sboms(layout string) error {
	own, err := b.d.contents(b.v, b.manifest, filepath.Join(b.temp, "bin"))
	if err != nil {
		return err
	}
	for i, image := range b.manifest.Images {
		var all contents
		for _, from := range b.v.recipe.Images[i].From {
			a, err := b.d.Artifact(from)
			if err != nil {
				return err
			}
			below, err := b.d.artifactContents(a)
			if err != nil {
				return err
			}
			all = all.add(below)
		}
		image.layout = layout
		if err := image.writeSBOM(all.add(own)); err != nil {
			return err
		}
	}
	return nil
}

// SBOM is the path of the image's software bill of materials, in the format CycloneDX. It is beside the image's layout.
func (i Image) SBOM() string {
	return filepath.Join(filepath.Dir(i.layout), "sbom", strings.TrimPrefix(i.Digest, "sha256:")+".cdx.json")
}

func (i Image) writeSBOM(c contents) error {
	var data bytes.Buffer
	encoder := cdx.NewBOMEncoder(&data, cdx.BOMFileFormatJSON).SetPretty(true)
	return errors.Join(
		os.MkdirAll(filepath.Dir(i.SBOM()), 0o755),
		encoder.EncodeVersion(billOfMaterials(i.Reference, i.Digest, c), cdx.SpecVersion1_6),
		os.WriteFile(i.SBOM(), data.Bytes(), 0o644),
	)
}

// billOfMaterials lists the contents of an image. The same image has the same list: there are no time stamp and no serial number in it.
func billOfMaterials(reference, digest string, c contents) *cdx.BOM {
	components := map[string]cdx.Component{}
	depends := map[string][]string{}
	const image = "image"
	add := func(parent string, component cdx.Component) {
		components[component.BOMRef] = component
		depends[parent] = append(depends[parent], component.BOMRef)
	}
	for _, p := range c.packages {
		qualifiers := packageurl.QualifiersFromMap(map[string]string{"arch": p.Architecture, "distro": p.suite})
		purl := packageurl.NewPackageURL(packageurl.TypeDebian, "debian", p.Name, p.Version, qualifiers, "").ToString()
		add(image, cdx.Component{
			BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: purl, Hashes: sha256Of(p.SHA256),
		})
	}
	for _, p := range c.programs {
		ref := "file:" + p.path
		add(image, cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeApplication, Name: strings.TrimPrefix(p.path, "/"), Version: p.version, Hashes: sha256Of(p.sha256),
		})
		for _, module := range modules(p.info) {
			add(ref, module)
		}
	}
	name, tag := reference[:strings.LastIndex(reference, ":")], reference[strings.LastIndex(reference, ":")+1:]
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: image, Type: cdx.ComponentTypeContainer, Name: name, Version: tag, Hashes: sha256Of(strings.TrimPrefix(digest, "sha256:")),
	}}
	listed := slices.SortedFunc(maps.Values(components), func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	bom.Components = &listed
	var dependencies []cdx.Dependency
	for _, ref := range slices.Sorted(maps.Keys(depends)) {
		on := slices.Compact(slices.Sorted(slices.Values(depends[ref])))
		dependencies = append(dependencies, cdx.Dependency{Ref: ref, Dependencies: &on})
	}
	bom.Dependencies = &dependencies
	return bom
}

// modules are the Go modules that a program was built from, as they were replaced, and the standard library.
func modules(info *debug.BuildInfo) []cdx.Component {
	if info == nil {
		return nil
	}
	used := []debug.Module{{Path: "std", Version: strings.TrimPrefix(strings.Fields(info.GoVersion)[0], "go")}}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Replace != nil {
			m = m.Replace
		}
		used = append(used, *m)
	}
	var components []cdx.Component
	for _, m := range used {
		if m.Version == "(devel)" {
			m.Version = "" // of this checkout
		}
		namespace, name := path.Split(m.Path)
		purl := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, m.Version, nil, "").ToString()
		components = append(components, cdx.Component{
			BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl,
		})
	}
	return components
}

func sha256Of(hex string) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex}}
}

// Image returns the image with this reference, of all products that are in the cache, or a *NotBuiltError.
func (d *Distribution) Image(reference string) (Image, error) {
	for _, v := range d.variants() {
		a, err := d.Artifact(v.ref())
		if notBuilt := (*NotBuiltError)(nil); errors.As(err, &notBuilt) {
			continue
		}
		if err != nil {
			return Image{}, err
		}
		images, err := a.Images()
		if err != nil {
			return Image{}, err
		}
		for _, image := range images {
			if image.Reference == reference {
				return image, nil
			}
		}
	}
	return Image{}, fmt.Errorf("no built image has the reference %q; list them with: bin/distribution images", reference)
}
