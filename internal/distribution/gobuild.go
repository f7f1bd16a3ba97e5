package distribution

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// goInvocation is one run of go build: binaries with the same flags are compiled together, because that shares work.
type goInvocation struct {
	binaries []Binary
	into     string // a directory for several, a file for one
}

// goInvocations groups binaries whose names in the recipe are those that go build gives them.
func goInvocations(binaries []Binary, bin string) []goInvocation {
	var groups []goInvocation
	at := map[string]int{}
	for _, b := range binaries {
		if path.Base(b.Package) != b.Name {
			groups = append(groups, goInvocation{[]Binary{b}, filepath.Join(bin, b.Name)})
			continue
		}
		flags := fmt.Sprint(b.CGO, b.Tags, b.LDFlags)
		i, ok := at[flags]
		if !ok {
			i = len(groups)
			at[flags] = i
			groups = append(groups, goInvocation{into: bin + "/"})
		}
		groups[i].binaries = append(groups[i].binaries, b)
	}
	return groups
}

// args are the arguments of go. -trimpath and CGO_ENABLED=0 are the same everywhere, so that products share compiled packages.
func (g goInvocation) args(v variant) ([]string, error) {
	b := g.binaries[0]
	args := []string{"go", "build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly"}
	if v.modFile() != filepath.Join(v.dir, "go.mod") {
		args = append(args, "-modfile="+v.modFile())
	}
	if len(b.Tags) > 0 {
		args = append(args, "-tags="+strings.Join(b.Tags, ","))
	}
	flags := []string{"-s", "-w"}
	for _, flag := range b.LDFlags {
		flag, err := v.values().expand(flag)
		if err != nil {
			return nil, err
		}
		flags = append(flags, flag)
	}
	args = append(args, "-ldflags="+strings.Join(flags, " "), "-o", g.into)
	for _, b := range g.binaries {
		args = append(args, b.Package)
	}
	return args, nil
}

func goEnv(cgo bool) []string {
	env := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GO111MODULE=on"}
	if cgo {
		env[0] = "CGO_ENABLED=1"
	}
	return env
}

// targetEnv is goEnv for the architecture.
func (d *Distribution) targetEnv(cgo bool) []string {
	return append(goEnv(cgo), "GOOS=linux", "GOARCH="+d.architecture)
}

// buildBinaries compiles into temp/bin.
func (b *build) buildBinaries(ctx context.Context) error {
	bin := filepath.Join(b.temp, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	compiled := 0
	for _, g := range goInvocations(b.v.recipe.Binaries, bin) {
		args, err := g.args(b.v)
		if err != nil {
			return err
		}
		b.step("compiling %s", g.names())
		err = command{dir: b.v.dir, env: b.d.targetEnv(g.binaries[0].CGO), args: args}.run(ctx, b.log, func(line string) {
			switch {
			case isPackageLine(line):
				compiled++
				b.step("%d packages compiled", compiled)
			case strings.HasPrefix(line, "go: downloading "):
				b.step("downloading %s", strings.TrimPrefix(line, "go: downloading "))
			}
		})
		if err != nil {
			return fmt.Errorf("compile %s: %w", g.names(), err)
		}
	}
	for _, binary := range b.v.recipe.Binaries {
		file, err := describeFile(bin, binary.Name)
		if err != nil {
			return err
		}
		b.manifest.Bin = append(b.manifest.Bin, file)
		for _, link := range binary.Links {
			if err := os.Symlink(binary.Name, filepath.Join(bin, link)); err != nil {
				return err
			}
			if b.manifest.Links == nil {
				b.manifest.Links = map[string]string{}
			}
			b.manifest.Links[link] = binary.Name
		}
	}
	return nil
}

func (g goInvocation) names() string {
	var names []string
	for _, b := range g.binaries {
		names = append(names, b.Name)
	}
	return strings.Join(names, ", ")
}

// isPackageLine reports whether a line is one of "go build -v", and not a message of a compiler or linker.
func isPackageLine(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#") && !strings.HasPrefix(line, ".")
}

// usefulTail are the last lines of a log that explain a failure, without the packages that were compiled.
func usefulTail(log string, n int) []string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return isPackageLine(line) || strings.HasPrefix(line, "go: downloading ") || strings.HasPrefix(line, "$ ") || strings.TrimSpace(line) == ""
	})
	return lines[max(0, len(lines)-n):]
}
