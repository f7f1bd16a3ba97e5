package distribution

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Status is the state of a product in one version.
type Status struct {
	Artifact
	Description string `json:"description"`
	// Standard is set for the version that is built by default, Optional for products that a landscape does not need.
	Standard bool `json:"standard"`
	Optional bool `json:"optional"`
	Cached   bool `json:"cached"`
	// Size in bytes and the duration of the build are zero if it is not built.
	Size         int64   `json:"size"`
	BuildSeconds float64 `json:"buildSeconds"`
}

// List returns all products in all versions, sorted by name.
func (d *Distribution) List() ([]Status, error) {
	var list []Status
	for _, v := range d.variants() {
		a, err := d.locate(v)
		if err != nil {
			return nil, err
		}
		s := Status{Artifact: *a, Description: v.recipe.Description, Standard: v.version == v.standard, Optional: v.recipe.Optional, Cached: a.complete()}
		if s.Cached {
			m, err := a.manifest()
			if err != nil {
				return nil, err
			}
			s.BuildSeconds = m.Seconds
			if s.Size, err = a.Size(); err != nil {
				return nil, err
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// Versions are those in which a product can be built: the standard one first, then the newest.
func (d *Distribution) Versions(name string) ([]string, error) {
	v, err := d.resolve(name)
	if err != nil {
		return nil, err
	}
	return v.versions(), nil
}

// Garbage is a directory that no recipe refers to any more.
type Garbage struct {
	Path string
	Size int64
}

// Garbage returns artifacts of former recipes, for all architectures, and leftovers of interrupted builds, except for what a running landscape
// uses.
func (d *Distribution) Garbage() ([]Garbage, error) {
	wanted := map[string]bool{}
	for _, architecture := range Architectures {
		of, err := d.For(architecture)
		if err != nil {
			return nil, err
		}
		for _, v := range of.variants() {
			a, err := of.locate(v)
			if err != nil {
				return nil, err
			}
			wanted[filepath.Base(a.Dir)] = true
		}
	}
	used := usedBy("/proc")
	var found []Garbage
	for _, dir := range []string{d.cache, d.tempRoot()} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for _, e := range entries {
			if dir == d.cache && (wanted[e.Name()] || strings.HasPrefix(e.Name(), ".") || e.Name() == "logs" || !e.IsDir()) {
				continue
			}
			if used(e.Name()) {
				continue
			}
			size, err := (&Artifact{Dir: filepath.Join(dir, e.Name())}).Size()
			if err != nil {
				return nil, err
			}
			found = append(found, Garbage{filepath.Join(dir, e.Name()), size})
		}
	}
	return found, nil
}

// usedBy reads the processes of a computer, and returns a function that reports whether one of them has a directory of this name mounted,
// runs from it, or has it in its PATH.
func usedBy(proc string) func(name string) bool {
	var seen strings.Builder
	processes, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, dir := range processes {
		for _, file := range []string{"mountinfo", "environ"} {
			data, _ := os.ReadFile(filepath.Join(dir, file)) // If this fails, the process has ended, or is of another user.
			seen.Write(data)
		}
		program, _ := os.Readlink(filepath.Join(dir, "exe")) // The same.
		seen.WriteString(program)
	}
	text := seen.String()
	return func(name string) bool { return strings.Contains(text, "/"+name+"/") }
}

// Remove deletes garbage, except for directories that a running build has locked.
func (d *Distribution) Remove(garbage []Garbage) error {
	var errs []error
	for _, g := range garbage {
		l, err := d.tryLock(filepath.Base(g.Path))
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(g.Path), l.release())
	}
	return errors.Join(errs...)
}

// SizeText formats bytes: 1.2 GiB, 35 MiB, 4 KiB.
func SizeText(bytes int64) string { return sizeText(bytes) }
