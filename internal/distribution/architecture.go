package distribution

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
)

// Architectures are those that products can be built for, on a machine of either.
var Architectures = []string{"amd64", "arm64"}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// For returns the same recipes to build, list and push for an architecture.
func (d *Distribution) For(architecture string) (*Distribution, error) {
	if architecture == d.architecture {
		return d, nil
	}
	if !slices.Contains(Architectures, architecture) {
		return nil, fmt.Errorf("unknown architecture %q; there are: %s", architecture, strings.Join(Architectures, ", "))
	}
	return &Distribution{Locks: d.Locks, root: d.root, cache: d.cache, architecture: architecture, products: d.products, keys: map[string]string{}}, nil
}

// Architecture is what artifacts are built for.
func (d *Distribution) Architecture() string { return d.architecture }

func (d *Distribution) platform() string { return "linux/" + d.architecture }

// suffix tells the files of another architecture from those of this machine, which have none.
func (d *Distribution) suffix() string {
	if d.architecture == runtime.GOARCH {
		return ""
	}
	return "-" + d.architecture
}

// flag is what a command needs for the architecture; it is that of this machine by default.
func (d *Distribution) flag() string {
	if d.architecture == runtime.GOARCH {
		return ""
	}
	return " --arch " + d.architecture
}

// NativeOnly is a product that only a machine of the architecture can build.
type NativeOnly struct {
	Product string
	Reason  string
}

// NativeOnly are the products that this machine cannot build, sorted by name: none for its own architecture.
func (d *Distribution) NativeOnly() []NativeOnly {
	var all []NativeOnly
	for _, name := range d.names() {
		if reason := d.nativeOnly(name); reason != "" {
			all = append(all, NativeOnly{name, reason})
		}
	}
	return all
}

// nativeOnly is the reason why this machine cannot build a product, be it one of those that it uses. It is "" if it can.
func (d *Distribution) nativeOnly(name string) string {
	if d.architecture == runtime.GOARCH {
		return ""
	}
	recipe := d.products[name].recipe
	if reason := recipe.nativeOnly(); reason != "" {
		return reason
	}
	for _, used := range recipe.uses() {
		if reason := d.nativeOnly(used); reason != "" {
			return fmt.Sprintf("it contains %s: %s", used, reason)
		}
	}
	return ""
}

// checkExecutable returns an error for an executable of another architecture. What is no ELF file, such as a script, runs everywhere.
func (d *Distribution) checkExecutable(file string) error {
	f, err := elf.Open(file)
	if invalid := (*elf.FormatError)(nil); errors.As(err, &invalid) || errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; build it with: %s", err, d.makeTarget())
	}
	defer f.Close() //nolint:errcheck // it was only read
	if f.Machine != machines[d.architecture] {
		return fmt.Errorf("%s is not for %s, but for %s; build it with: %s", file, d.architecture, f.Machine, d.makeTarget())
	}
	return nil
}

func (d *Distribution) makeTarget() string {
	if d.architecture == runtime.GOARCH {
		return "make build"
	}
	return "make build-" + d.architecture
}
