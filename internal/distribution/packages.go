package distribution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DebianPackage is a package in a root file system, with the SHA-256 of the archive that it was unpacked from.
type DebianPackage struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	SHA256       string `json:"sha256"`
}

// LockPolicy says what a difference between the packages of the archive and a lock file does to a build.
type LockPolicy int

const (
	// ReportUnlocked builds with what Debian publishes now: its mirrors do not keep earlier versions, so that a machine without a cache could
	// not build otherwise. Unlocked returns the differences. A package that differs from the locked one of the same version is refused.
	ReportUnlocked LockPolicy = iota
	// RequireLocked refuses every difference, also in artifacts that are in the cache.
	RequireLocked
	// ignoreLocks is for the update of lock files.
	ignoreLocks
)

// Unlocked is a package that differs from the lock file of its product. Before has no name if the lock file lacks the package, and After
// has none if it was not installed.
type Unlocked struct {
	Product       string
	Before, After DebianPackage
}

func (u Unlocked) String() string {
	switch {
	case u.Before.Name == "":
		return fmt.Sprintf("%s: %s %s is not in the lock file", u.Product, u.After.Name, u.After.Version)
	case u.After.Name == "":
		return fmt.Sprintf("%s: %s %s is not installed any more", u.Product, u.Before.Name, u.Before.Version)
	case u.replaced():
		return fmt.Sprintf("%s: %s %s has SHA-256 %s instead of %s", u.Product, u.After.Name, u.After.Version, u.After.SHA256, u.Before.SHA256)
	}
	return fmt.Sprintf("%s: %s %s is now %s", u.Product, u.After.Name, u.Before.Version, u.After.Version)
}

// replaced reports whether the archive of a package has changed without its version: Debian never does that.
func (u Unlocked) replaced() bool {
	return u.Before.Version == u.After.Version && u.Before.Architecture == u.After.Architecture
}

// LockError says which packages differ from lock files.
type LockError struct {
	Packages []Unlocked

	flag string // of the command that accepts them
}

func (e *LockError) Error() string {
	var lines, products []string
	for _, u := range e.Packages {
		lines = append(lines, "\n    "+u.String())
		products = append(products, u.Product)
	}
	return fmt.Sprintf("Debian packages differ from the lock files:%s\n  if that is right, run: bin/distribution lock%s %s",
		strings.Join(lines, ""), e.flag, strings.Join(slices.Compact(products), " "))
}

// diffPackages compares the locked packages of a product with those that were installed, both sorted.
func diffPackages(product string, locked, installed []DebianPackage) []Unlocked {
	before := map[string]DebianPackage{}
	for _, p := range locked {
		before[p.Name] = p
	}
	var diff []Unlocked
	for _, p := range installed {
		if before[p.Name] != p {
			diff = append(diff, Unlocked{product, before[p.Name], p})
		}
		delete(before, p.Name)
	}
	for _, p := range locked {
		if _, ok := before[p.Name]; ok {
			diff = append(diff, Unlocked{Product: product, Before: p})
		}
	}
	return diff
}

// parsePackages reads lines of name, version, architecture and SHA-256, and sorts them by name. Lines that start with # are comments.
func parsePackages(text string) ([]DebianPackage, error) {
	var packages []DebianPackage
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 4 || len(fields[3]) != 64 {
			return nil, fmt.Errorf("line %q is not: name version architecture sha256", strings.TrimSpace(line))
		}
		packages = append(packages, DebianPackage{fields[0], fields[1], fields[2], fields[3]})
	}
	slices.SortFunc(packages, func(a, b DebianPackage) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(packages); i++ {
		if packages[i].Name == packages[i-1].Name {
			return nil, fmt.Errorf("package %s is listed twice", packages[i].Name)
		}
	}
	return packages, nil
}

// debianLock is where the packages of a product are locked.
func (d *Distribution) debianLock(v variant) string {
	return filepath.Join(v.dir, "debian-"+d.architecture+".lock")
}

// unlocked are the differences between the lock file of a product and the packages that were installed.
func (d *Distribution) unlocked(v variant, installed []DebianPackage) ([]Unlocked, error) {
	data, err := os.ReadFile(d.debianLock(v))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	locked, err := parsePackages(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.debianLock(v), err)
	}
	return diffPackages(v.name, locked, installed), nil
}

// checkLock returns a *LockError for differences that the policy does not accept.
func (d *Distribution) checkLock(v variant, installed []DebianPackage) error {
	if d.Locks == ignoreLocks {
		return nil
	}
	diff, err := d.unlocked(v, installed)
	if err != nil {
		return err
	}
	if d.Locks != RequireLocked {
		diff = slices.DeleteFunc(diff, func(u Unlocked) bool { return !u.replaced() })
	}
	if len(diff) > 0 {
		return &LockError{Packages: diff, flag: d.flag()}
	}
	return nil
}

// debianPackages calls do with the installed packages of each of the variants that has Debian packages; all are built.
func (d *Distribution) debianPackages(all []variant, do func(v variant, installed []DebianPackage) error) error {
	for _, v := range all {
		if v.recipe.Debian == nil {
			continue
		}
		a, err := d.Artifact(v.ref())
		if err != nil {
			return err
		}
		m, err := a.manifest()
		if err != nil {
			return err
		}
		if err := do(v, m.DebianPackages); err != nil {
			return err
		}
	}
	return nil
}

// Unlocked are the packages of built products, and of those they use, that differ from the lock files.
func (d *Distribution) Unlocked(refs ...string) ([]Unlocked, error) {
	requested, err := d.resolveAll(refs)
	if err != nil {
		return nil, err
	}
	var diff []Unlocked
	return diff, d.debianPackages(d.withUses(requested), func(v variant, installed []DebianPackage) error {
		found, err := d.unlocked(v, installed)
		diff = append(diff, found...)
		return err
	})
}

// Lock builds products with the packages that Debian publishes now, unless they are in the cache, writes these into the lock files and
// returns their paths. Products without Debian packages are left out.
func (d *Distribution) Lock(ctx context.Context, progress Progress, refs ...string) ([]string, error) {
	requested, err := d.resolveAll(refs)
	if err != nil {
		return nil, err
	}
	requested = slices.DeleteFunc(requested, func(v variant) bool { return v.recipe.Debian == nil })
	var debian []string
	for _, v := range requested {
		debian = append(debian, v.ref())
	}
	defer func(before LockPolicy) { d.Locks = before }(d.Locks)
	d.Locks = ignoreLocks
	if _, err := d.Build(ctx, progress, debian...); err != nil {
		return nil, err
	}
	var files []string
	return files, d.debianPackages(requested, func(v variant, installed []DebianPackage) error {
		var text strings.Builder
		text.WriteString("# Written by: bin/distribution lock\n# package version architecture sha256\n")
		for _, p := range installed {
			fmt.Fprintln(&text, p.Name, p.Version, p.Architecture, p.SHA256)
		}
		files = append(files, d.debianLock(v))
		return os.WriteFile(d.debianLock(v), []byte(text.String()), 0o644)
	})
}
