package distribution

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packagesFile has the list of packages in the new root file system; it is not part of the layer.
const packagesFile = ".distribution-packages"

// listPackages lists the archives of the packages in the new root: name, version, architecture and SHA-256. In a system with a package
// manager, it also checks that the packages of these archives are installed, and no others.
const listPackages = `cd "$1"
for deb in var/cache/apt/archives/*.deb; do
	fields=$(dpkg-deb -W --showformat '${Package} ${Version} ${Architecture}' "$deb")
	sum=$(sha256sum "$deb")
	echo "$fields ${sum%% *}"
done | LC_ALL=C sort >` + packagesFile + `
if [ -s var/lib/dpkg/status ]; then
	cut -d ' ' -f 1-3 ` + packagesFile + ` >` + packagesFile + `.archives
	dpkg-query --admindir=var/lib/dpkg -W -f '${Package} ${Version} ${Architecture}\n' | LC_ALL=C sort | diff ` + packagesFile + `.archives - >&2
	rm ` + packagesFile + `.archives
fi`

// aptSources are the building machine's own sources of a Debian suite, so that the build uses its mirror and its proxy too. Other
// archives of the machine are left out, and those that are not for the architecture. Without any, mmdebstrap uses Debian's own mirror.
func aptSources(dir, suite, architecture string) (string, error) {
	var lines []string
	old, err := os.ReadFile(filepath.Join(dir, "sources.list"))
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "sources.list.d", "*"))
	if err != nil {
		return "", err
	}
	add := func(file, text string) error {
		found, err := oneLineSources(text, suite, architecture)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		lines = append(lines, found...)
		return nil
	}
	if err := add("sources.list", string(old)); err != nil {
		return "", err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		switch filepath.Ext(file) {
		case ".list":
			if err := add(filepath.Base(file), string(data)); err != nil {
				return "", err
			}
		case ".sources":
			lines = append(lines, stanzaSources(string(data), suite, architecture)...)
		}
	}
	if len(lines) == 0 {
		return "", nil
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// belongsTo reports whether an entry is bookworm, bookworm-updates or bookworm-security of Debian, whose archives have a component main,
// and not a bookworm-something of another vendor.
func belongsTo(suite, entry string, components []string) bool {
	return slices.Contains([]string{suite, suite + "-updates", suite + "-security"}, entry) && slices.Contains(components, "main")
}

// sourceOptions are the options of sources that builds take over from the building machine. None of them has apt trust what is not signed
// by the archive, as trusted, allow-insecure and allow-weak do, or accept old indexes, as check-valid-until does.
var sourceOptions = []string{"arch", "by-hash", "lang", "pdiffs", "signed-by"}

// checkOptions returns an error for options that builds do not take over.
func checkOptions(options string) error {
	for _, option := range strings.Fields(options) {
		name, _, _ := strings.Cut(option, "=")
		if name = strings.ToLower(strings.TrimRight(name, "+-")); !slices.Contains(sourceOptions, name) {
			return fmt.Errorf("option %q of a package source is not allowed for builds, but only: %s", name, strings.Join(sourceOptions, ", "))
		}
	}
	return nil
}

// oneLineSources reads "deb [options] uri suite components..." lines.
func oneLineSources(text, suite, architecture string) ([]string, error) {
	var lines []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		rest, ok := strings.CutPrefix(line, "deb ")
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		options := ""
		if strings.HasPrefix(rest, "[") {
			options, rest, _ = strings.Cut(rest[1:], "]")
		}
		fields := strings.Fields(rest)
		if len(fields) < 3 || !belongsTo(suite, fields[1], fields[2:]) || foreign(fields[0]) {
			continue
		}
		if err := checkOptions(options); err != nil {
			return nil, err
		}
		if has(listed(options), architecture) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines, nil
}

// listed are the architectures that the options of a source restrict it to.
func listed(options string) []string {
	for _, option := range strings.Fields(options) {
		if name, value, _ := strings.Cut(option, "="); strings.EqualFold(name, "arch") {
			return strings.Split(value, ",")
		}
	}
	return nil
}

// has reports whether a source that is restricted to some architectures, or to none, has packages for another.
func has(architectures []string, architecture string) bool {
	return len(architectures) == 0 || slices.Contains(architectures, architecture)
}

// stanzaSources reads deb822 stanzas and returns them as lines.
func stanzaSources(text, suite, architecture string) []string {
	var lines []string
	for stanza := range strings.SplitSeq(text, "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(stanza) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			if name, value, ok := strings.Cut(line, ":"); ok {
				fields[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
			}
		}
		if !slices.Contains(strings.Fields(fields["types"]), "deb") || fields["enabled"] == "no" ||
			!has(strings.Fields(fields["architectures"]), architecture) {
			continue
		}
		options := ""
		if key := fields["signed-by"]; strings.HasPrefix(key, "/") {
			options = "[signed-by=" + key + "] "
		}
		for _, uri := range strings.Fields(fields["uris"]) {
			for _, entry := range strings.Fields(fields["suites"]) {
				if belongsTo(suite, entry, strings.Fields(fields["components"])) && !foreign(uri) {
					lines = append(lines, fmt.Sprintf("deb %s%s %s %s", options, uri, entry, fields["components"]))
				}
			}
		}
	}
	return lines
}

// foreign reports whether an archive is not Debian's, as other archives may have suites of the same name: Debian's are under /debian or
// /debian-security on every mirror.
func foreign(uri string) bool {
	return !strings.Contains(strings.TrimSuffix(uri, "/")+"/", "/debian/") && !strings.Contains(strings.TrimSuffix(uri, "/")+"/", "/debian-security/")
}

// buildDebian creates the root file system and writes it as a layer.
func (b *build) buildDebian(ctx context.Context) (Layer, error) {
	recipe := b.v.recipe.Debian
	sources, err := aptSources("/etc/apt", recipe.Suite, b.d.architecture)
	if err != nil {
		return Layer{}, fmt.Errorf("read the machine's package sources: %w", err)
	}
	day, err := time.Parse(time.DateOnly, recipe.Refreshed)
	if err != nil {
		return Layer{}, err
	}
	root := filepath.Join(b.temp, ".root.tar")
	args := []string{
		"mmdebstrap", "--architectures=" + b.d.architecture,
		"--mode=root", "--format=tar", "--variant=" + recipe.Variant, "--include=" + strings.Join(recipe.Packages, ","),
		"--aptopt=APT::Install-Recommends false",
		"--skip=essential/unlink", // All archives must still be there for listPackages. They are not part of the layer.
	}
	hook := "--customize-hook="
	if recipe.Variant == "extract" {
		hook = "--extract-hook=" // the last one of this variant
	}
	for _, script := range []string{listPackages, recipe.Setup} {
		if script != "" {
			args = append(args, hook+"set -eu\n"+script)
		}
	}
	args = append(args, recipe.Suite, root)
	if sources != "" {
		args = append(args, "-")
	}
	b.step("installing Debian packages")
	// In the build directory, so that leftovers of a killed run are removed with it.
	env := []string{"TMPDIR=" + b.temp, "LC_ALL=C.UTF-8", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", day.Unix())}
	err = command{dir: b.temp, env: env, stdin: sources, args: args}.run(ctx, b.log, func(line string) {
		if doing, ok := strings.CutPrefix(line, "I: "); ok && !strings.Contains(doing, "hook") {
			b.step("%s", strings.TrimSuffix(doing, "..."))
		}
	})
	if err != nil {
		return Layer{}, fmt.Errorf("install Debian packages: %w", err)
	}
	b.step("writing the root file system")
	entries, err := tarEntries(root)
	if err != nil {
		return Layer{}, err
	}
	kept := entries[:0]
	for _, e := range entries {
		if e.name != packagesFile {
			if recipe.keeps(e.name) {
				kept = append(kept, e)
			}
			continue
		}
		if b.manifest.DebianPackages, err = readPackages(e); err != nil {
			return Layer{}, err
		}
	}
	if err := checkVersion(b.v, b.manifest.DebianPackages); err != nil {
		return Layer{}, err
	}
	if err := b.d.checkLock(b.v, b.manifest.DebianPackages); err != nil {
		return Layer{}, err
	}
	layer, err := writeLayer(filepath.Join(b.temp, "images"), kept)
	return layer, errors.Join(err, os.Remove(root))
}

// keeps reports whether a file is part of the layer.
func (r *Debian) keeps(name string) bool {
	return len(r.Keep) == 0 || slices.ContainsFunc(r.Keep, func(keep string) bool {
		keep = strings.TrimPrefix(keep, "/")
		return name == keep || strings.HasPrefix(name, keep+"/")
	})
}

// checkVersion compares a product's version with that of its main package: 2.6 is right for haproxy=2.6.12-1+deb12u2.
func checkVersion(v variant, packages []DebianPackage) error {
	name := v.recipe.Debian.VersionOf
	if name == "" {
		return nil
	}
	for _, p := range packages {
		if p.Name == name {
			got := p.Version
			if _, after, ok := strings.Cut(got, ":"); ok {
				got = after // the epoch
			}
			if got == v.version || strings.HasPrefix(got, v.version+".") || strings.HasPrefix(got, v.version+"-") {
				return nil
			}
			return fmt.Errorf("the archive has %s %s, but product.yaml says version %s: correct it", name, got, v.version)
		}
	}
	return fmt.Errorf("package %s was not installed", name)
}

// readPackages reads what listPackages writes.
func readPackages(e entry) ([]DebianPackage, error) {
	if e.typ != tar.TypeReg {
		return nil, fmt.Errorf("%s is no file", e.name)
	}
	r, err := e.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return parsePackages(string(data))
}
