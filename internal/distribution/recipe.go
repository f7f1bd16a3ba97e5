package distribution

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Recipe says how a product is built. It is the content of distribution/<product>/product.yaml; unknown keys are refused.
//
// Beside it are, where the product needs them: go.mod with go.sum (a module of its own, whose tool directives pin the main
// packages of other modules), *.go files (mains of our own), v*.mod with v*.sum (further versions of the same product) and
// files/ (copied into every image of the product at the same path; executable files get mode 0755, others 0644).
type Recipe struct {
	// Description is one line: for `distribution list -o wide` and the title of the images.
	Description string `json:"description"`
	// Licenses is the SPDX expression of what is shipped, and Source the address of where it comes from; both become labels.
	Licenses string `json:"licenses"`
	Source   string `json:"source,omitempty"`

	// Module is the Go module whose version, read from go.mod, is the version of the product.
	// Version is for products without a module. Exactly one of the two is set.
	Module  string `json:"module,omitempty"`
	Version string `json:"version,omitempty"`

	// Optional keeps the product out of `distribution build` without arguments, because a landscape does not need it.
	Optional bool `json:"optional,omitempty"`
	// HostPackages are Debian packages the building machine must have, such as a C library's headers.
	HostPackages []string `json:"hostPackages,omitempty"`
	// NativeOnly is the reason why a machine of another architecture cannot build the product. A product with cgo, or with a Debian system whose
	// packages are configured, needs none: that is a reason.
	NativeOnly string `json:"nativeOnly,omitempty"`

	// Debian is a root file system of Debian packages: the lowest layer of the product.
	Debian *Debian `json:"debian,omitempty"`
	// Include copies the binaries of other products into the images of this one, one layer each.
	Include []Include `json:"include,omitempty"`
	// Binaries are built in the product's Go module and are the top layer of its images.
	Binaries []Binary `json:"binaries,omitempty"`
	// Images are made from the layers of the product, and differ in their configuration.
	Images []ImageRecipe `json:"images,omitempty"`
}

// Binary is one executable, built with -trimpath and, unless CGO is set, without cgo.
type Binary struct {
	Name string `json:"name"`
	// Package is the import path of the main package; "." is the product's own directory.
	Package string   `json:"package"`
	Tags    []string `json:"tags,omitempty"`
	CGO     bool     `json:"cgo,omitempty"`
	// LDFlags are templates over Values and come after "-s -w".
	LDFlags []string `json:"ldflags,omitempty"`
	// Links are further names of a binary that acts on the name it is called by. Images have them all, or those of their Programs.
	Links []string `json:"links,omitempty"`
	// Dir is where the binary lies in images: /usr/local/bin by default.
	Dir string `json:"dir,omitempty"`
	// Setuid makes the binary run as its owner, root, in images.
	Setuid bool `json:"setuid,omitempty"`
}

// Debian is a root file system that mmdebstrap creates.
type Debian struct {
	Suite string `json:"suite"`
	// Variant is "minbase" for a system with a package manager, or "extract" for the bare files of the packages and their
	// dependencies, without running any of their scripts.
	Variant  string   `json:"variant"`
	Packages []string `json:"packages"`
	// Refreshed is a day such as "2026-11-21". It is the time stamp inside the root file system; as it is part of the key,
	// changing it fetches the newest packages.
	Refreshed string `json:"refreshed"`
	// Setup is a shell script of the building machine that changes files in the new root directory, its working directory.
	Setup string `json:"setup,omitempty"`
	// Keep are the paths that are part of the layer, with all below them; everything by default. They must not be files of packages that
	// Packages does not name, as an SBOM does not list these then.
	Keep []string `json:"keep,omitempty"`
	// VersionOf names the package whose upstream version must be the product's version, so that tags are right.
	VersionOf string `json:"versionOf,omitempty"`
}

// Include is a set of binaries of another product, put into Dir (default /usr/local/bin).
type Include struct {
	Product string `json:"product"`
	Dir     string `json:"dir,omitempty"`
}

// ImageRecipe is one image.
type ImageRecipe struct {
	// Repository is the full name without tag: registry.k8s.io/kube-apiserver.
	Repository string `json:"repository"`
	// Tag is a template over Values; {{.Version}} by default.
	Tag string `json:"tag,omitempty"`
	// From are products whose layers lie below the product's own.
	From []string `json:"from,omitempty"`
	// Entrypoint is what runs, and Cmd its arguments, or without an entry point the whole command. A pod can replace each of them.
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Cmd        []string          `json:"cmd,omitempty"`
	User       string            `json:"user,omitempty"`
	StopSignal string            `json:"stopSignal,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Programs are those links of binaries that the image is for; it has no others. All images of a product name theirs, or none does. The
	// links are in a layer of the image's own, so that all images share that of the binaries, together with the file
	// /usr/local/share/<binary>/programs, which has their names, one per line. A binary that finds the file must act under no other name.
	Programs []string `json:"programs,omitempty"`
}

// Values is what templates in a recipe can use: {{.Version}} is v1.36.3, {{.Number}} is 1.36.3, {{.Major}} is 1.
type Values struct {
	Version, Number, Major, Minor, Patch string
}

func valuesFor(version string) Values {
	v := Values{Version: version, Number: strings.TrimPrefix(version, "v")}
	core, _, _ := strings.Cut(v.Number, "-")
	for i, part := range strings.SplitN(core, ".", 3) {
		*[]*string{&v.Major, &v.Minor, &v.Patch}[i] = part
	}
	return v
}

func (v Values) expand(text string) (string, error) {
	t, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("template %q: %w", text, err)
	}
	var out strings.Builder
	if err := t.Execute(&out, v); err != nil {
		return "", fmt.Errorf("template %q: %w", text, err)
	}
	return out.String(), nil
}

const defaultBinDir = "/usr/local/bin"

func (b Binary) dir() string {
	if b.Dir == "" {
		return defaultBinDir
	}
	return b.Dir
}

func (i Include) dir() string {
	if i.Dir == "" {
		return defaultBinDir
	}
	return i.Dir
}

func (i ImageRecipe) reference(v Values) (string, error) {
	tag := i.Tag
	if tag == "" {
		tag = "{{.Version}}"
	}
	tag, err := v.expand(tag)
	return i.Repository + ":" + tag, err
}

// programs reports whether each image has only the links of its own programs.
func (r *Recipe) programs() bool {
	return slices.ContainsFunc(r.Images, func(image ImageRecipe) bool { return len(image.Programs) > 0 })
}

// uses are the products that this one uses, sorted.
func (r *Recipe) uses() []string {
	var names []string
	for _, include := range r.Include {
		names = append(names, include.Product)
	}
	for _, image := range r.Images {
		names = append(names, image.From...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nativeOnly is the reason why only a machine of the architecture that the product is for can build it, "" if every machine can.
func (r *Recipe) nativeOnly() string {
	for _, b := range r.Binaries {
		if b.CGO {
			return fmt.Sprintf("%s is written in C in part", b.Name)
		}
	}
	if r.NativeOnly == "" && r.Debian != nil && r.Debian.Variant != "extract" {
		return "installing its Debian packages runs programs of them"
	}
	return r.NativeOnly
}

// canonical is the recipe without comments, order of keys and white space, and without what has no influence on the artifact.
func (r *Recipe) canonical() []byte {
	built := *r
	built.NativeOnly = ""
	data, err := json.Marshal(&built)
	if err != nil {
		panic(err) // strings and bools only
	}
	return data
}

func parseRecipe(data []byte) (*Recipe, error) {
	data, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	r := &Recipe{}
	unknown, err := kjson.UnmarshalStrict(data, r)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if problems := r.validate(); len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return r, nil
}

var (
	namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	// packagePattern is that of Debian's policy.
	packagePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	dayPattern     = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
)

// validate returns every problem, each with the path the user typed.
func (r *Recipe) validate() []string {
	var problems []string
	bad := func(path, format string, args ...any) {
		problems = append(problems, path+": "+fmt.Sprintf(format, args...))
	}
	name := func(path, value string) {
		if !namePattern.MatchString(value) {
			bad(path, "%q is not a name of lower case letters, digits, dots and dashes", value)
		}
	}
	dir := func(path, value string) {
		if value != "" && (!strings.HasPrefix(value, "/") || cleanPath(value) != value) {
			bad(path, "%q is not an absolute, clean path", value)
		}
	}
	tmpl := func(path, text string) {
		if _, err := (Values{}).expand(text); err != nil {
			bad(path, "%v", err)
		}
	}

	if r.Description == "" {
		bad("description", "missing")
	}
	if r.Licenses == "" {
		bad("licenses", "missing")
	}
	if (r.Module == "") == (r.Version == "") {
		bad("module", "set exactly one of module and version")
	}
	if d := r.Debian; d != nil {
		// Suite and packages are arguments of mmdebstrap and of apt, which take options, files and patterns too.
		if d.Suite == "" {
			bad("debian.suite", "missing")
		} else {
			name("debian.suite", d.Suite)
		}
		for i, p := range d.Packages {
			if !packagePattern.MatchString(p) {
				bad(fmt.Sprintf("debian.packages[%d]", i), "%q is not a name of a Debian package", p)
			}
		}
		if d.Variant != "minbase" && d.Variant != "extract" {
			bad("debian.variant", "%q is neither minbase nor extract", d.Variant)
		}
		if len(d.Packages) == 0 {
			bad("debian.packages", "missing")
		}
		if !dayPattern.MatchString(d.Refreshed) {
			bad("debian.refreshed", "%q is not a day such as 2026-11-21", d.Refreshed)
		}
		for i, keep := range d.Keep {
			dir(fmt.Sprintf("debian.keep[%d]", i), keep)
		}
		if d.VersionOf != "" && !slices.Contains(d.Packages, d.VersionOf) {
			bad("debian.versionOf", "%q is not in debian.packages", d.VersionOf)
		}
	}
	for i, include := range r.Include {
		name(fmt.Sprintf("include[%d].product", i), include.Product)
		dir(fmt.Sprintf("include[%d].dir", i), include.Dir)
	}
	seen, links := map[string]bool{}, map[string]bool{}
	for i, b := range r.Binaries {
		at := fmt.Sprintf("binaries[%d]", i)
		for j, n := range append([]string{b.Name}, b.Links...) {
			p := at + ".name"
			if j > 0 {
				p = fmt.Sprintf("%s.links[%d]", at, j-1)
			}
			name(p, n)
			if seen[n] {
				bad(p, "duplicate name %q", n)
			}
			seen[n] = true
			links[n] = j > 0
		}
		if b.Package == "" {
			bad(at+".package", "missing")
		}
		dir(at+".dir", b.Dir)
		for j, flag := range b.LDFlags {
			tmpl(fmt.Sprintf("%s.ldflags[%d]", at, j), flag)
		}
	}
	for i, image := range r.Images {
		at := fmt.Sprintf("images[%d]", i)
		if host, rest, ok := strings.Cut(image.Repository, "/"); !ok || rest == "" || !strings.Contains(host, ".") || strings.Contains(rest, ":") {
			bad(at+".repository", "%q is not a full name such as registry.k8s.io/pause", image.Repository)
		}
		if len(image.Entrypoint)+len(image.Cmd) == 0 {
			bad(at+".entrypoint", "missing, and there is no cmd either")
		}
		tmpl(at+".tag", image.Tag)
		for j, program := range image.Programs {
			if p := fmt.Sprintf("%s.programs[%d]", at, j); !links[program] {
				bad(p, "%q is no link of a binary", program)
			} else if slices.Contains(image.Programs[:j], program) {
				bad(p, "duplicate name %q", program)
			}
		}
		if len(image.Programs) == 0 && r.programs() {
			bad(at+".programs", "missing: other images of the product name theirs")
		}
		for j, from := range image.From {
			name(fmt.Sprintf("%s.from[%d]", at, j), from)
		}
	}
	return problems
}

func cleanPath(p string) string {
	return path.Clean(p)
}
