package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func golangciLint(ctx context.Context, t *tree) error {
	// Checks of other clones may run at the same time: their lock would make this one fail.
	_, err := t.command(ctx, "", "env", asBuilt("go", "tool", "-modfile=hack/tools/go.mod",
		"golangci-lint", "run", "--allow-parallel-runners", "--show-stats=false", "./...")...)
	return err
}

func goVet(ctx context.Context, t *tree) error {
	_, err := t.command(ctx, "", "env", asBuilt("go", "vet", "./...")...)
	return err
}

// asBuilt are the arguments of env that run a command with the settings of `make build`. With others, every dependency is compiled a second time.
func asBuilt(command ...string) []string {
	return append([]string{"CGO_ENABLED=0", "GOFLAGS=-trimpath"}, command...)
}

// gofumpt checks the files of all modules, except for generated code.
func gofumpt(ctx context.Context, t *tree) error {
	files := handWritten(t.files)
	if len(files) == 0 {
		return nil
	}
	unformatted, err := t.tool(ctx, append([]string{"gofumpt", "-l"}, files...)...)
	if err == nil && unformatted != "" {
		err = errors.New(unformatted)
	}
	return err
}

func handWritten(files []string) []string {
	var out []string
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "zz_generated") && !strings.HasSuffix(name, ".pb.go") {
			out = append(out, file)
		}
	}
	return out
}

func tidy(ctx context.Context, t *tree) error {
	var errs []error
	for _, dir := range t.modules() {
		if _, err := t.command(ctx, dir, "go", "mod", "tidy", "-diff"); err != nil {
			errs = append(errs, fmt.Errorf("module in %s:\n%w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// generated runs the generators on a copy and compares, so that it neither needs a clean tree nor changes it.
func generated(ctx context.Context, t *tree) error {
	dir, err := os.MkdirTemp("", "gardener-generate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := t.copyMainModule(dir); err != nil {
		return err
	}
	if _, err := t.command(ctx, "", "hack/generate.sh", dir); err != nil {
		return err
	}
	return t.compare(dir)
}

// mainModule returns the files outside of nested modules.
func (t *tree) mainModule() []string {
	nested := slices.DeleteFunc(t.modules(), func(dir string) bool { return dir == "." })
	return slices.DeleteFunc(slices.Clone(t.files), func(file string) bool {
		return slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
	})
}

func (t *tree) copyMainModule(dir string) error {
	for _, file := range t.mainModule() {
		data, err := os.ReadFile(t.path(file))
		if err != nil {
			return err
		}
		target := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare returns how the files of the main module differ from those in dir, where they were generated again.
func (t *tree) compare(dir string) error {
	var errs []error
	files := map[string]bool{}
	for _, file := range t.mainModule() {
		files[file] = true
		have, err := os.ReadFile(t.path(file))
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join(dir, file))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s: nothing generates it any more", file))
		case err != nil:
			return err
		case !bytes.Equal(have, want):
			errs = append(errs, fmt.Errorf("%s: out of date", file))
		}
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := filepath.Rel(dir, path)
		if err == nil && !files[file] {
			errs = append(errs, fmt.Errorf("%s: missing", file))
		}
		return err
	})
	return errors.Join(append(errs, err)...)
}
