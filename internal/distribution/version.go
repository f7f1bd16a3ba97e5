package distribution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// AddVersion writes VERSION.mod and VERSION.sum beside the recipe of a product, from its go.mod: the product can then be built in this version,
// too. Nothing is left of a version that does not exist. Output of go goes to log.
//
// It returns the older versions of the same minor that are built on demand like it, the newest first.
func (d *Distribution) AddVersion(ctx context.Context, name, version string, log io.Writer) ([]string, error) {
	v, err := d.resolve(name)
	if err != nil {
		return nil, err
	}
	switch {
	case v.recipe.Module == "":
		return nil, fmt.Errorf("product %s has one version only: its recipe names no module", v.name)
	case semver.Canonical(version) != version:
		return nil, fmt.Errorf("%q is not a version such as %s", version, v.version)
	case v.modFiles[version] != "":
		return nil, fmt.Errorf("product %s has version %s already, in %s", v.name, version, v.modFiles[version])
	}
	published, err := publishedModule(ctx, v, version)
	if err != nil {
		return nil, err
	}
	standard, err := os.ReadFile(v.modFile())
	if err != nil {
		return nil, err
	}
	text, err := modForVersion(standard, published, v.recipe.Module, version)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(v.dir, version+".mod")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	tidy := command{dir: v.dir, env: goEnv(false), args: []string{"go", "mod", "tidy", "-modfile=" + filepath.Base(file)}}
	if err := tidy.run(ctx, log, func(string) {}); err != nil {
		sum := os.Remove(strings.TrimSuffix(file, ".mod") + ".sum")
		if errors.Is(sum, os.ErrNotExist) {
			sum = nil
		}
		return nil, errors.Join(fmt.Errorf("tidy: %w", err), os.Remove(file), sum)
	}
	return slices.DeleteFunc(v.versions(), func(other string) bool {
		return other == v.standard || semver.MajorMinor(other) != semver.MajorMinor(version) || semver.Compare(other, version) > 0
	}), nil
}

// publishedModule is the go.mod with which the product's module was published.
func publishedModule(ctx context.Context, v variant, version string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", v.recipe.Module+"@"+version)
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), goEnv(false)...)
	out, runErr := cmd.Output()
	var info struct{ GoMod, Error string }
	if err := json.Unmarshal(out, &info); err != nil {
		return nil, errors.Join(fmt.Errorf("download %s %s: %w", v.recipe.Module, version, err), runErr)
	}
	if info.Error != "" {
		return nil, fmt.Errorf("download %s %s: %s; list the versions with: go list -m -versions %s", v.recipe.Module, version, info.Error, v.recipe.Module)
	}
	return os.ReadFile(info.GoMod)
}

// modForVersion returns a go.mod like that of the standard version for another one, to be tidied. What the product requires itself moves with it
// if it has the same version, and so do its staging modules: those that its module was developed with in one repository, which
// are published as v0.36.3 beside v1.36.3. What is required indirectly is found by go mod tidy, so that an older version gets the older modules.
func modForVersion(standard, published []byte, module, version string) ([]byte, error) {
	f, err := modfile.Parse("go.mod", standard, nil)
	if err != nil {
		return nil, err
	}
	source, err := modfile.Parse(module+" "+version, published, nil)
	if err != nil {
		return nil, err
	}
	staging := map[string]bool{}
	for _, r := range source.Replace {
		staging[r.Old.Path] = modfile.IsDirectoryPath(r.New.Path)
	}
	before, stagingVersion := requiredIn(f, module), "v0"+strings.TrimPrefix(version, semver.Major(version))
	for _, r := range slices.Clone(f.Require) {
		switch {
		case r.Indirect:
			err = f.DropRequire(r.Mod.Path)
		case staging[r.Mod.Path]:
			err = f.AddRequire(r.Mod.Path, stagingVersion)
		case r.Mod.Version == before:
			err = f.AddRequire(r.Mod.Path, version)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(staging)) {
		if staging[path] {
			if err := f.AddReplace(path, "", path, stagingVersion); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range slices.Clone(f.Replace) {
		if r.Old.Path == r.New.Path && !staging[r.Old.Path] { // the standard version has it, and this one not
			if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return nil, err
			}
		}
	}
	f.Cleanup()
	f.SortBlocks()
	return f.Format()
}
