// Package extensioninit is the command that writes the source of a new extension, which compiles and passes its tests.
package extensioninit

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"gardener.cloud/gardener/internal/subcommand"
)

// Name is the name of the command.
const Name = "extension"

// goVersion is the version of Go in go.mod of a new extension: that of this module.
const goVersion = "1.26.4"

//go:embed all:files
var files embed.FS

// values are what templates see.
type values struct {
	// Name is the name of the extension, and Type that of its Extensions.
	Name, Type string
	// Module is its path. Gardener is the directory of a checkout that replaces the module of Gardener, and may be empty. Version is that of the module.
	Module, Gardener, Version string
	// Go is the version of Go.
	Go string
}

// names are those of extensions: they become names of objects and of files.
var names = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)

// published matches versions of a module; others, such as that of a changed checkout, cannot be required.
var published = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// unpublished is the version in go.mod when a directory replaces the module.
const unpublished = "v0.0.0"

// NewCommand returns the command "extension".
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: Name, Short: "Write the source of a new extension", Args: cobra.ArbitraryArgs, RunE: subcommand.Choose, SilenceUsage: true,
	}
	v, directory := values{Go: goVersion}, ""
	initialize := &cobra.Command{
		Use:     "init NAME",
		Short:   "Write the source of a new extension: an actuator, its process, tests of the contract, a chart and its registration",
		Example: "  gardener extension init hello\n  gardener extension init provider-example --module=example.com/provider-example --gardener=../gardener",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v.Name, v.Version = args[0], moduleVersion()
			if v.Version == unpublished && v.Gardener == "" {
				return errors.New("this binary is not of a published version: name a directory with the source of Gardener by --gardener")
			}
			if directory == "" {
				directory = v.Name
			}
			if err := write(directory, v); err != nil {
				return err
			}
			next := "go mod tidy"
			if v.Gardener != "" { // only this computer has that directory: the image and CI are built from a copy
				next += " && go mod vendor"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is written. Next: cd %s && %s && go test ./...\n", v.Name, directory, next)
			return nil
		},
	}
	flags := initialize.Flags()
	flags.StringVar(&v.Module, "module", "", "path of the Go module (default: example.com/NAME)")
	flags.StringVar(&v.Type, "type", "", "spec.type of the Extensions that it reconciles (default: NAME without its first part if that is extension or provider)")
	flags.StringVar(&v.Gardener, "gardener", "", "directory with the source of Gardener, instead of the published module")
	flags.StringVar(&directory, "directory", "", "directory to create (default: NAME)")
	cmd.AddCommand(initialize)
	return cmd
}

// write writes the files into a directory, which must not exist.
func write(directory string, v values) error {
	if !names.MatchString(v.Name) {
		return fmt.Errorf("name %q: must have at most 40 lower case letters, digits and dashes, begin with a letter, and not end with a dash", v.Name)
	}
	if v.Module == "" {
		v.Module = "example.com/" + v.Name
	}
	if v.Type == "" {
		v.Type = strings.TrimPrefix(strings.TrimPrefix(v.Name, "extension-"), "provider-")
	}
	if v.Gardener != "" {
		absolute, err := filepath.Abs(v.Gardener)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(absolute, "go.mod")); err != nil {
			return fmt.Errorf("--gardener=%s: it is not the directory of a Go module", v.Gardener)
		}
		v.Gardener = absolute
	}
	if err := os.Mkdir(directory, 0o755); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists; choose another one with --directory", directory)
	} else if err != nil {
		return err
	}
	return fs.WalkDir(files, "files", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return writeFile(directory, name, v)
	})
}

// writeFile renders one template. The files of the chart are templates of Helm, so ours have other delimiters.
func writeFile(directory, name string, v values) error {
	source, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(source))
	if err != nil {
		return err
	}
	relative := strings.TrimSuffix(strings.TrimPrefix(name, "files/"), ".tmpl")
	relative = strings.Replace(relative, "charts/chart/", path.Join("charts", v.Name)+"/", 1)
	target := filepath.Join(directory, filepath.FromSlash(relative))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	var out strings.Builder
	if err := t.Execute(&out, v); err != nil {
		return err
	}
	return os.WriteFile(target, []byte(out.String()), 0o644)
}

// moduleVersion returns the version of this module, if the binary was built from a published one.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && published.MatchString(info.Main.Version) {
		return info.Main.Version
	}
	return unpublished
}
