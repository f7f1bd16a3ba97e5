package distribution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const manifestFile = "manifest.json"

// Artifact is a finished product in the cache. Its directory never changes: other inputs make another artifact.
type Artifact struct {
	Product string `json:"product"`
	Version string `json:"version"`
	Key     string `json:"key"`
	Dir     string `json:"dir"`
}

// manifest is the content of manifest.json, the last file of an artifact to be written.
type manifest struct {
	Product string `json:"product"`
	Version string `json:"version"`
	Key     string `json:"key"`
	// Seconds is how long the build took.
	Seconds float64 `json:"buildSeconds"`
	// Bin are the files in bin/, Links the further names of some.
	Bin   []manifestFileEntry `json:"bin,omitempty"`
	Links map[string]string   `json:"links,omitempty"`
	// Layers are the product's own, the lowest first.
	Layers []Layer `json:"layers,omitempty"`
	Images []Image `json:"images,omitempty"`
	// DebianPackages are the packages that the root file system was made of, sorted by name.
	DebianPackages []DebianPackage `json:"debianPackages,omitempty"`
}

type manifestFileEntry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// dirName is readable, and its end makes it unique.
func artifactDirName(v variant, key string) string {
	return strings.ReplaceAll(v.name+"-"+v.version, "/", "_") + "-" + key[:16]
}

// Artifact returns the artifact of PRODUCT or PRODUCT@VERSION with its current recipe, or a *NotBuiltError.
func (d *Distribution) Artifact(ref string) (*Artifact, error) {
	v, err := d.resolve(ref)
	if err != nil {
		return nil, err
	}
	a, err := d.locate(v)
	if err != nil {
		return nil, err
	}
	if !a.complete() {
		return nil, &NotBuiltError{Ref: d.shortRef(v), flag: d.flag()}
	}
	return a, nil
}

// Built returns the artifacts of all versions of a product that are in the cache: the standard one first, then the newest.
func (d *Distribution) Built(name string) ([]*Artifact, error) {
	v, err := d.resolve(name)
	if err != nil {
		return nil, err
	}
	var built []*Artifact
	for _, version := range v.versions() {
		a, err := d.locate(variant{v.product, version})
		if err != nil {
			return nil, err
		}
		if a.complete() {
			built = append(built, a)
		}
	}
	return built, nil
}

// NotBuiltError says that an artifact is not in the cache.
type NotBuiltError struct {
	Ref string

	flag string // of the command that builds it
}

func (e *NotBuiltError) Error() string {
	return fmt.Sprintf("%s is not built; run: bin/distribution build%s %s", e.Ref, e.flag, e.Ref)
}

func (d *Distribution) shortRef(v variant) string {
	if v.version == v.standard {
		return v.name
	}
	return v.ref()
}

// locate returns the artifact with its directory, which need not exist.
func (d *Distribution) locate(v variant) (*Artifact, error) {
	key, err := d.key(v)
	if err != nil {
		return nil, err
	}
	return &Artifact{Product: v.name, Version: v.version, Key: key, Dir: filepath.Join(d.cache, artifactDirName(v, key))}, nil
}

// complete also checks for the files, in case some were deleted by hand.
func (a *Artifact) complete() bool {
	m, err := a.manifest()
	if err != nil || m.Key != a.Key {
		return false
	}
	for _, f := range m.Bin {
		info, err := os.Stat(filepath.Join(a.Dir, "bin", f.Name))
		if err != nil || info.Size() != f.Size {
			return false
		}
	}
	for _, l := range m.Layers {
		info, err := os.Stat(blobFile(a.ImagesDir(), l))
		if err != nil || info.Size() != l.Size {
			return false
		}
	}
	return !slices.ContainsFunc(m.Images, func(i Image) bool {
		i.layout = a.ImagesDir()
		return !i.complete()
	})
}

// ImagesDir is an OCI image layout that holds the product's images, if it has any.
func (a *Artifact) ImagesDir() string { return filepath.Join(a.Dir, "images") }

func (a *Artifact) manifest() (*manifest, error) {
	data, err := os.ReadFile(filepath.Join(a.Dir, manifestFile))
	if err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", a.Product, err)
	}
	m := &manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", a.Product, err)
	}
	return m, nil
}

// Binary is the path of an executable, by its name or one of its further names.
func (a *Artifact) Binary(name string) (string, error) {
	m, err := a.manifest()
	if err != nil {
		return "", err
	}
	var names []string
	for _, f := range m.Bin {
		names = append(names, f.Name)
	}
	for link := range m.Links {
		names = append(names, link)
	}
	if !slices.Contains(names, name) {
		slices.Sort(names)
		return "", fmt.Errorf("%s has no binary %q; it has: %s", a.Product, name, strings.Join(names, ", "))
	}
	return filepath.Join(a.Dir, "bin", name), nil
}

// Images are the images of the artifact, in the order of the recipe.
func (a *Artifact) Images() ([]Image, error) {
	m, err := a.manifest()
	if err != nil {
		return nil, err
	}
	for i := range m.Images {
		m.Images[i].layout = a.ImagesDir()
	}
	return m.Images, nil
}

// Size is the disk space of the artifact in bytes; layers that it shares with others count for each.
func (a *Artifact) Size() (int64, error) {
	var size int64
	err := filepath.WalkDir(a.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// publish renames a finished temporary directory to that of the artifact, once everything is on disk.
func publish(temp string, a *Artifact, m *manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temp, manifestFile), append(data, '\n'), 0o644); err != nil {
		return err
	}
	if err := syncTree(temp); err != nil {
		return err
	}
	if exists(a.Dir) { // incomplete, as files in it were deleted
		if err := os.RemoveAll(a.Dir); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, a.Dir); err != nil {
		return err
	}
	return syncPath(filepath.Dir(a.Dir))
}

func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		return syncPath(path)
	})
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func describeFile(dir, name string) (manifestFileEntry, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return manifestFileEntry{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	return manifestFileEntry{Name: name, Size: size, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}
