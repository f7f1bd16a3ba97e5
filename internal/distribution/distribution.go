// Package distribution builds the third-party software that Gardener needs, such as Kubernetes, containerd
// and the machine image, from the recipes in distribution/ of the repository into a cache that is addressed by content.
package distribution

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// CacheEnv is the environment variable that names the cache directory. It is read by DefaultCache only.
const CacheEnv = "GARDENER_CACHE"

// Distribution is the recipes of a checkout and the artifacts built from them, for one architecture.
type Distribution struct {
	// Locks says what becomes of builds whose Debian packages differ from the lock files. It must not change during a build.
	Locks LockPolicy

	root         string // the checkout
	cache        string
	architecture string // what artifacts are built for
	products     map[string]*product

	mu   sync.Mutex // guards what is computed once, below
	keys map[string]string
	host hostFacts
}

// product is a recipe with the versions it can be built in.
type product struct {
	name     string
	dir      string
	recipe   *Recipe
	standard string            // the version that is built by default
	modFiles map[string]string // version -> mod file; "" when the product has no Go module
}

// variant is a product in one version: an artifact is built from it.
type variant struct {
	*product
	version string
}

func (v variant) ref() string     { return v.name + "@" + v.version }
func (v variant) values() Values  { return valuesFor(v.version) }
func (v variant) modFile() string { return v.modFiles[v.version] }

// DefaultCache is GARDENER_CACHE, or gardener/distribution in the user's cache directory.
func DefaultCache() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" { //nolint:forbidigo // the same directory for all mains that build
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory: %w; set %s", err, CacheEnv)
	}
	return filepath.Join(dir, "gardener", "distribution"), nil
}

// FindRoot returns the checkout that dir lies in.
func FindRoot(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := start; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && modfile.ModulePath(data) == "gardener.cloud/gardener" {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside a checkout of gardener.cloud/gardener: run this in one", start)
		}
	}
}

// Open reads the recipes in repoRoot/distribution, to build for the architecture of this machine. It builds nothing and does not need the cache
// to exist; an empty cacheDir means DefaultCache.
func Open(repoRoot, cacheDir string) (*Distribution, error) {
	if cacheDir == "" {
		var err error
		if cacheDir, err = DefaultCache(); err != nil {
			return nil, err
		}
	}
	cacheDir, err := filepath.Abs(cacheDir)
	if err != nil {
		return nil, err
	}
	d := &Distribution{root: repoRoot, cache: cacheDir, architecture: runtime.GOARCH, products: map[string]*product{}, keys: map[string]string{}}
	recipes, err := filepath.Glob(filepath.Join(repoRoot, "distribution", "*", "product.yaml"))
	if err != nil {
		return nil, err
	}
	if len(recipes) == 0 {
		return nil, fmt.Errorf("no recipe in %s: is this a checkout of gardener.cloud/gardener?", filepath.Join(repoRoot, "distribution"))
	}
	var problems []error
	for _, file := range recipes {
		p, err := openProduct(filepath.Dir(file))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		d.products[p.name] = p
	}
	if len(problems) == 0 {
		problems = d.checkUses()
	}
	return d, errors.Join(problems...)
}

func openProduct(dir string) (*product, error) {
	file := filepath.Join(dir, "product.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	recipe, err := parseRecipe(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p := &product{name: filepath.Base(dir), dir: dir, recipe: recipe, modFiles: map[string]string{}}
	mod := filepath.Join(dir, "go.mod")
	if recipe.Module == "" {
		p.standard = recipe.Version
		p.modFiles[p.standard] = ""
		if len(recipe.Binaries) > 0 {
			p.modFiles[p.standard] = mod
		}
		return p, nil
	}
	if p.standard, err = requiredVersion(mod, recipe.Module); err != nil {
		return nil, err
	}
	p.modFiles[p.standard] = mod
	others, err := filepath.Glob(filepath.Join(dir, "v*.mod"))
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		version, err := requiredVersion(other, recipe.Module)
		if err != nil {
			return nil, err
		}
		if want := strings.TrimSuffix(filepath.Base(other), ".mod"); version != want {
			return nil, fmt.Errorf("%s: requires %s %s, but its name says %s", other, recipe.Module, version, want)
		}
		p.modFiles[version] = other
	}
	return p, nil
}

// requiredVersion is the version of a module that a mod file requires.
func requiredVersion(file, module string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	f, err := modfile.Parse(file, data, nil)
	if err != nil {
		return "", err
	}
	if version := requiredIn(f, module); version != "" {
		return version, nil
	}
	return "", fmt.Errorf("%s: does not require %s, the module of this product", file, module)
}

// requiredIn is the version of a module that a mod file requires, "" if it requires none.
func requiredIn(f *modfile.File, module string) string {
	for _, r := range f.Require {
		if r.Mod.Path == module {
			return r.Mod.Version
		}
	}
	return ""
}

// checkUses returns errors for uses of unknown products, and for cycles.
func (d *Distribution) checkUses() []error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(d.products)) {
		for _, used := range d.products[name].recipe.uses() {
			if d.products[used] == nil {
				problems = append(problems, fmt.Errorf("%s: uses product %q, which has no recipe", filepath.Join(d.products[name].dir, "product.yaml"), used))
			}
		}
	}
	if len(problems) > 0 {
		return problems
	}
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(name string, trail []string) error
	visit = func(name string, trail []string) error {
		trail = append(trail, name)
		switch state[name] {
		case visiting:
			return fmt.Errorf("%s: products use each other in a cycle: %s", filepath.Join(d.products[name].dir, "product.yaml"), strings.Join(trail, " -> "))
		case done:
			return nil
		}
		state[name] = visiting
		for _, used := range d.products[name].recipe.uses() {
			if err := visit(used, trail); err != nil {
				return err
			}
		}
		state[name] = done
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(d.products)) {
		if err := visit(name, nil); err != nil {
			return []error{err}
		}
	}
	return nil
}

// resolve parses PRODUCT and PRODUCT@VERSION, the version with or without its v.
func (d *Distribution) resolve(ref string) (variant, error) {
	name, version, versioned := strings.Cut(ref, "@")
	p := d.products[name]
	if p == nil {
		return variant{}, fmt.Errorf("unknown product %q; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(d.products)), ", "))
	}
	if !versioned {
		return variant{p, p.standard}, nil
	}
	for _, candidate := range []string{version, "v" + version} {
		if _, ok := p.modFiles[candidate]; ok {
			return variant{p, candidate}, nil
		}
	}
	return variant{}, fmt.Errorf("product %s has no version %q; there are: %s", name, version, strings.Join(p.versions(), ", "))
}

// resolveAll parses references, each as resolve does.
func (d *Distribution) resolveAll(refs []string) ([]variant, error) {
	var all []variant
	for _, ref := range refs {
		v, err := d.resolve(ref)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// versions are the versions of the product, the standard one first, then the newest.
func (p *product) versions() []string {
	others := slices.Collect(maps.Keys(p.modFiles))
	slices.SortFunc(others, func(a, b string) int {
		switch {
		case a == p.standard:
			return -1
		case b == p.standard:
			return 1
		}
		return -semver.Compare(a, b)
	})
	return others
}

// variants are all products in all versions, sorted by name.
func (d *Distribution) variants() []variant {
	var all []variant
	for _, name := range slices.Sorted(maps.Keys(d.products)) {
		for _, version := range d.products[name].versions() {
			all = append(all, variant{d.products[name], version})
		}
	}
	return all
}

// Default are the products that a landscape needs; All adds the optional ones. Both in their standard version, and without those that this
// machine cannot build, which NativeOnly returns.
func (d *Distribution) Default() []string {
	return slices.DeleteFunc(d.All(), func(name string) bool { return d.products[name].recipe.Optional })
}

// All are the names of all products that this machine can build.
func (d *Distribution) All() []string {
	return slices.DeleteFunc(d.names(), func(name string) bool { return d.nativeOnly(name) != "" })
}

func (d *Distribution) names() []string { return slices.Sorted(maps.Keys(d.products)) }

// withUses adds the variants that these use, each once and before its users.
func (d *Distribution) withUses(requested []variant) []variant {
	var ordered []variant
	seen := map[string]bool{}
	var add func(v variant)
	add = func(v variant) {
		if seen[v.ref()] {
			return
		}
		seen[v.ref()] = true
		for _, used := range v.recipe.uses() {
			add(variant{d.products[used], d.products[used].standard})
		}
		ordered = append(ordered, v)
	}
	for _, v := range requested {
		add(v)
	}
	return ordered
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
