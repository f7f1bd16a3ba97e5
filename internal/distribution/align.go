package distribution

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Align makes a product use the same versions of modules as another one (in practice, Kubernetes), so that packages that both use
// are compiled once. Newer versions that the product requires are excluded: go then ignores these requirements. A replace
// directive would not help, as it compiles the same files under another version. Output of go goes to log.
func (d *Distribution) Align(ctx context.Context, ref, like string, log io.Writer) error {
	v, err := d.resolve(ref)
	if err != nil {
		return err
	}
	model, err := d.resolve(like)
	if err != nil {
		return err
	}
	for _, each := range []variant{v, model} {
		if each.modFile() == "" {
			return fmt.Errorf("product %s has no Go module", each.name)
		}
	}
	modelData, err := os.ReadFile(model.modFile())
	if err != nil {
		return err
	}
	// An excluded version can hide a module that requires yet another one, hence several rounds.
	for range alignRounds {
		data, err := os.ReadFile(v.modFile())
		if err != nil {
			return err
		}
		graph := exec.CommandContext(ctx, "go", "mod", "graph", "-modfile="+filepath.Base(v.modFile()))
		graph.Dir, graph.Env, graph.Stderr = v.dir, append(os.Environ(), goEnv(false)...), log
		edges, err := graph.Output()
		if err != nil {
			return fmt.Errorf("read the module graph: %w", err)
		}
		aligned, changed, err := alignModules(v.modFile(), data, modelData, string(edges))
		if err != nil || !changed {
			return err
		}
		if err := os.WriteFile(v.modFile(), aligned, 0o644); err != nil {
			return err
		}
		tidy := command{dir: v.dir, env: goEnv(false), args: []string{"go", "mod", "tidy", "-modfile=" + filepath.Base(v.modFile())}}
		if err := tidy.run(ctx, log, func(string) {}); err != nil {
			return fmt.Errorf("tidy: %w", err)
		}
	}
	return fmt.Errorf("the module graph still changes after %d rounds", alignRounds)
}

const alignRounds = 6

// alignModules returns the go.mod of a product with the model's versions of the modules that both require, and whether it differs from
// before. graph is the output of "go mod graph".
func alignModules(name string, data, model []byte, graph string) ([]byte, bool, error) {
	f, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, false, err
	}
	versions, err := usedVersions(model)
	if err != nil {
		return nil, false, err
	}
	shared := map[string]string{}
	for _, r := range f.Require {
		if version := versions[r.Mod.Path]; version != "" {
			shared[r.Mod.Path] = version
		}
	}
	excluded := map[module.Version]bool{}
	for _, e := range f.Exclude {
		excluded[e.Mod] = true
	}
	changed := false
	for _, word := range slices.Sorted(slices.Values(strings.Fields(graph))) {
		path, version, ok := strings.Cut(word, "@")
		newer := module.Version{Path: path, Version: version}
		if !ok || shared[path] == "" || semver.Compare(version, shared[path]) <= 0 || excluded[newer] {
			continue
		}
		excluded[newer], changed = true, true
		if err := f.AddExclude(path, version); err != nil {
			return nil, false, err
		}
	}
	for _, r := range f.Require {
		version := shared[r.Mod.Path]
		if version == "" || version == r.Mod.Version {
			continue
		}
		changed = true
		if err := f.AddRequire(r.Mod.Path, version); err != nil {
			return nil, false, err
		}
	}
	f.Cleanup()
	f.SortBlocks()
	text, err := f.Format()
	return text, changed, err
}

// usedVersions are the versions of all modules in a go.mod, replacements by another version applied.
func usedVersions(data []byte) (map[string]string, error) {
	f, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, r := range f.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range f.Replace {
		if r.Old.Path == r.New.Path && r.New.Version != "" && versions[r.Old.Path] != "" {
			versions[r.Old.Path] = r.New.Version
		}
	}
	return versions, nil
}
