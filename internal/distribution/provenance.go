package distribution

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	statementType  = "https://in-toto.io/Statement/v1"
	predicateType  = "https://slsa.dev/provenance/v1"
	recipeBuild    = "https://gardener.cloud/distribution/recipe/v1"
	goProgramBuild = "https://gardener.cloud/distribution/program/v1"
	builderID      = "https://gardener.cloud/distribution"
)

// statement is an in-toto statement with a SLSA provenance predicate. It has no times, so that the same image has the same statement.
type statement struct {
	Type          string      `json:"_type"`
	Subject       []resource  `json:"subject"`
	PredicateType string      `json:"predicateType"`
	Predicate     slsaContent `json:"predicate"`
}

// resource is a ResourceDescriptor of in-toto.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type slsaContent struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters,omitempty"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

func newStatement(image Image, buildType string, external, internal map[string]string, dependencies []resource) statement {
	s := statement{Type: statementType, PredicateType: predicateType, Subject: []resource{{Name: image.Reference, Digest: sha256Digest(image.Digest)}}}
	build := &s.Predicate.BuildDefinition
	build.BuildType, build.ExternalParameters, build.InternalParameters, build.ResolvedDependencies = buildType, external, internal, dependencies
	s.Predicate.RunDetails.Builder.ID = builderID
	return s
}

func sha256Digest(sum string) map[string]string {
	return map[string]string{"sha256": strings.TrimPrefix(sum, "sha256:")}
}

// statement says how an image of an artifact was built: by which recipe, from which versions and sources.
func (d *Distribution) statement(image Image, a *Artifact) (statement, error) {
	v, err := d.resolve(a.Product + "@" + a.Version)
	if err != nil {
		return statement{}, err
	}
	files := []string{filepath.Join(v.dir, "product.yaml")}
	if mod := v.modFile(); mod != "" {
		files = append(files, mod, strings.TrimSuffix(mod, ".mod")+".sum")
	}
	dependencies, err := d.files(files)
	if err != nil {
		return statement{}, err
	}
	if v.recipe.Module != "" {
		dependencies = append(dependencies, resource{Name: v.recipe.Module, URI: "pkg:golang/" + v.recipe.Module + "@" + v.version})
	}
	if v.recipe.Source != "" {
		dependencies = append(dependencies, resource{Name: "source", URI: v.recipe.Source})
	}
	for _, used := range v.recipe.uses() {
		of, err := d.Artifact(used)
		if err != nil {
			return statement{}, err
		}
		dependencies = append(dependencies, resource{Name: "product " + used + "@" + of.Version, Digest: map[string]string{"recipeKey": of.Key}})
	}
	m, err := a.manifest()
	if err != nil {
		return statement{}, err
	}
	for _, p := range m.DebianPackages {
		dependencies = append(dependencies, resource{
			Name: p.Name, URI: "pkg:deb/debian/" + p.Name + "@" + p.Version + "?arch=" + p.Architecture, Digest: sha256Digest(p.SHA256),
		})
	}
	return newStatement(image, recipeBuild,
		map[string]string{"product": a.Product, "version": a.Version},
		map[string]string{"key": a.Key, "platform": d.platform()}, dependencies), nil
}

// wrappedStatement says how the image with all processes of Gardener was built.
func (d *Distribution) wrappedStatement(image Image, base *Artifact, p Push) (statement, error) {
	program, err := describeFile(filepath.Split(p.Executable))
	if err != nil {
		return statement{}, err
	}
	dependencies, err := d.files([]string{filepath.Join(d.root, "go.mod"), filepath.Join(d.root, "go.sum")})
	if err != nil {
		return statement{}, err
	}
	dependencies = append(dependencies,
		resource{Name: program.Name, Digest: sha256Digest(program.SHA256)},
		resource{Name: "product " + base.Product + "@" + base.Version, Digest: map[string]string{"recipeKey": base.Key}})
	return newStatement(image, goProgramBuild, map[string]string{"version": p.Version}, map[string]string{"platform": d.platform()}, dependencies), nil
}

// files returns those of some files of the checkout that exist.
func (d *Distribution) files(paths []string) ([]resource, error) {
	var found []resource
	for _, path := range paths {
		if !exists(path) {
			continue
		}
		described, err := describeFile(filepath.Split(path))
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(d.root, path)
		if err != nil {
			return nil, err
		}
		found = append(found, resource{Name: filepath.ToSlash(relative), Digest: sha256Digest(described.SHA256)})
	}
	return found, nil
}

// Release returns the version of Gardener in the checkout, and where `make build`, or `make build-arm64`, writes the executable.
func (d *Distribution) Release() (version, executable string, err error) {
	data, err := os.ReadFile(filepath.Join(d.root, "VERSION"))
	bin := filepath.Join(d.root, "bin")
	if d.architecture != runtime.GOARCH {
		bin = filepath.Join(bin, d.architecture)
	}
	return strings.TrimSpace(string(data)), filepath.Join(bin, "gardener"), err
}
