package distribution

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Disk space that a build may take, rounded up generously: measured sizes are in distribution/README.md.
const (
	spacePerGoProduct     = 1 << 30
	spacePerDebianProduct = 1 << 30
)

// preflight checks whether the variants can be built on this machine. Every problem is a sentence that says what to do.
func (d *Distribution) preflight(missing []variant) error {
	var problems []string
	var packages []string
	var needed uint64
	usesGo, usesDebian := false, false
	for _, v := range missing {
		if reason := d.nativeOnly(v.name); reason != "" {
			problems = append(problems, fmt.Sprintf("%s for %s cannot be built on a machine of another architecture: %s", d.shortRef(v), d.architecture, reason))
		}
		if len(v.recipe.Binaries) > 0 {
			usesGo = true
			needed += spacePerGoProduct
		}
		if v.recipe.Debian != nil {
			usesDebian = true
			needed += spacePerDebianProduct
		}
		for _, name := range v.recipe.HostPackages {
			if d.hostPackage(name) == "" && !slices.Contains(packages, name) {
				packages = append(packages, name)
			}
		}
	}
	if usesGo {
		if _, err := exec.LookPath("go"); err != nil {
			problems = append(problems, "go is not in PATH: install Go and run this again")
		}
	}
	if usesDebian {
		if _, err := exec.LookPath("mmdebstrap"); err != nil {
			packages = append(packages, "mmdebstrap")
		}
		if os.Geteuid() != 0 {
			problems = append(problems, fmt.Sprintf("%s: mmdebstrap creates root file systems as root; run this as root", strings.Join(debianProducts(missing), ", ")))
		}
	}
	if len(packages) > 0 {
		slices.Sort(packages)
		problems = append(problems, fmt.Sprintf("Debian packages are missing on this machine; install them with: apt-get install %s", strings.Join(packages, " ")))
	}
	if len(problems) == 0 {
		problems = append(problems, d.checkSpace(needed, usesGo)...)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

func (d *Distribution) hostPackage(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.host.packageVersion(name)
}

func debianProducts(variants []variant) []string {
	var names []string
	for _, v := range variants {
		if v.recipe.Debian != nil {
			names = append(names, v.name)
		}
	}
	return names
}

// checkSpace checks the file systems of the cache and of Go's caches.
func (d *Distribution) checkSpace(needed uint64, usesGo bool) []string {
	dirs := []string{d.cache}
	if usesGo {
		if out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output(); err == nil {
			dirs = append(dirs, strings.Fields(string(out))...)
		}
	}
	var problems []string
	seen := map[unix.Fsid]bool{}
	for _, dir := range dirs {
		existing := dir
		for !exists(existing) {
			existing = filepath.Dir(existing)
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(existing, &fs); err != nil || seen[fs.Fsid] {
			continue
		}
		seen[fs.Fsid] = true
		if free := fs.Bavail * uint64(fs.Bsize); free < needed {
			problems = append(problems, fmt.Sprintf("too little disk space for %s: %s free, up to %s needed; free some, or choose another place with --cache",
				dir, sizeText(int64(free)), sizeText(int64(needed))))
		}
	}
	return problems
}

// sizeText formats bytes.
func sizeText(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (bytes+1023)/1024)
}
