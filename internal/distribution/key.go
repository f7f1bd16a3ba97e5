package distribution

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// toolVersion is part of every key: raise it when the same inputs give other artifacts than before.
const toolVersion = "2"

// inputs are everything that an artifact depends on, by name. Nothing else may influence a build.
type inputs map[string]string

// key is a hash over the inputs.
func (in inputs) key() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(in)) {
		fmt.Fprintf(h, "%d:%s=%d:%s\n", len(name), name, len(in[name]), in[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// key is the artifact's name in the cache: a hash over all inputs of the variant, including the products that it uses.
func (d *Distribution) key(v variant) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keyLocked(v)
}

func (d *Distribution) keyLocked(v variant) (string, error) {
	if key, ok := d.keys[v.ref()]; ok {
		return key, nil
	}
	in, err := d.inputs(v)
	if err != nil {
		return "", fmt.Errorf("inputs of %s: %w", v.ref(), err)
	}
	for _, used := range v.recipe.uses() {
		key, err := d.keyLocked(variant{d.products[used], d.products[used].standard})
		if err != nil {
			return "", err
		}
		in["product:"+used] = key
	}
	d.keys[v.ref()] = in.key()
	return d.keys[v.ref()], nil
}

// inputs reads the inputs of the variant, without the products that it uses.
func (d *Distribution) inputs(v variant) (inputs, error) {
	in := inputs{
		"tool": toolVersion, "platform": d.platform(), "product": v.name, "version": v.version,
		"recipe": string(v.recipe.canonical()),
	}
	if len(v.recipe.Binaries) > 0 {
		goVersion, err := d.host.goVersion(v.modFile())
		if err != nil {
			return nil, err
		}
		in["go"] = goVersion
		if err := in.addGo(v, d.targetEnv(false)); err != nil {
			return nil, err
		}
	}
	for _, name := range v.recipe.HostPackages {
		in["host:"+name] = d.host.packageVersion(name)
	}
	return in, in.addTree(v.dir, "files")
}

// addGo adds the module files and the product's own sources; tests are not part of binaries.
func (in inputs) addGo(v variant, env []string) error {
	sum := strings.TrimSuffix(v.modFile(), ".mod") + ".sum"
	for name, file := range map[string]string{"mod": v.modFile(), "sum": sum} {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && name == "sum" {
			continue // a module without requirements has none
		}
		if err != nil {
			return err
		}
		in[name] = hashOf(data)
	}
	err := filepath.WalkDir(v.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(v.dir, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && (rel == "files" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		in["source:"+rel] = hashOf(data)
		return err
	})
	if err != nil {
		return err
	}
	return in.addLocalModules(v, env)
}

// addLocalModules adds the packages that a product uses of modules in this repository. go.sum says nothing about them.
func (in inputs) addLocalModules(v variant, env []string) error {
	data, err := os.ReadFile(v.modFile())
	if err != nil {
		return err
	}
	f, err := modfile.Parse(v.modFile(), data, nil)
	if err != nil {
		return err
	}
	local := slices.DeleteFunc(f.Replace, func(r *modfile.Replace) bool { return !modfile.IsDirectoryPath(r.New.Path) })
	if len(local) == 0 {
		return nil
	}
	const format = `{{with .Module}}{{if .Replace}}{{$.ImportPath}} {{.Replace.Path}} {{$.Dir}}` +
		`{{range $.GoFiles}} {{.}}{{end}}{{range $.EmbedFiles}} {{.}}{{end}}{{end}}{{end}}`
	args := []string{"list", "-deps", "-mod=readonly", "-f", format}
	if v.modFile() != filepath.Join(v.dir, "go.mod") {
		args = append(args, "-modfile="+v.modFile())
	}
	for _, b := range v.recipe.Binaries {
		args = append(args, b.Package)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = v.dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return fmt.Errorf("list the packages of modules in this repository: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !modfile.IsDirectoryPath(fields[1]) {
			continue
		}
		for _, name := range fields[3:] {
			data, err := os.ReadFile(filepath.Join(fields[2], name))
			if err != nil {
				return err
			}
			in["source:"+fields[0]+"/"+name] = hashOf(data)
		}
	}
	return nil
}

// addTree adds a directory below dir, if it exists, with the modes that git keeps.
func (in inputs) addTree(dir, name string) error {
	tree := filepath.Join(dir, name)
	if !exists(tree) {
		return nil
	}
	return filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			in["file:"+rel] = "link " + target
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		in["file:"+rel] = fmt.Sprintf("%o %s", gitMode(info.Mode()), hashOf(data))
		return err
	})
}

// gitMode is the mode a file has after a checkout: only the executable bit is kept.
func gitMode(mode fs.FileMode) fs.FileMode {
	if mode&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// hostFacts are facts about the building machine, each read once. It is used under the lock of Distribution.
type hostFacts struct {
	goVersions map[string]string // by the version that a module requires
	packages   map[string]string
}

// goVersion is the version of Go that builds a module. It depends on the module, not on where we run: Go may fetch a newer one for it.
func (h *hostFacts) goVersion(modFile string) (string, error) {
	data, err := os.ReadFile(modFile)
	if err != nil {
		return "", err
	}
	f, err := modfile.ParseLax(modFile, data, nil)
	if err != nil {
		return "", err
	}
	required := ""
	if f.Go != nil {
		required = f.Go.Version
	}
	if version, ok := h.goVersions[required]; ok {
		return version, nil
	}
	cmd := exec.Command("go", "env", "GOVERSION")
	cmd.Dir = filepath.Dir(modFile)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("read the version of Go: %w; install Go and put it into PATH", err)
	}
	if h.goVersions == nil {
		h.goVersions = map[string]string{}
	}
	h.goVersions[required] = string(bytes.TrimSpace(out))
	return h.goVersions[required], nil
}

// packageVersion is the installed version of a Debian package, "" if it is not installed.
func (h *hostFacts) packageVersion(name string) string {
	if v, ok := h.packages[name]; ok {
		return v
	}
	if h.packages == nil {
		h.packages = map[string]string{}
	}
	out, err := exec.Command("dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", name).Output()
	version, installed := strings.CutPrefix(string(out), "installed ")
	if err != nil || !installed {
		version = ""
	}
	h.packages[name] = version
	return version
}
