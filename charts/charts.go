// Package charts has the Helm charts of this repository: for registries, and for ControllerDeployments.
package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"io/fs"
	"regexp"
	"strings"
)

// Names of charts.
const (
	// Gardenlet is the chart of the gardenlet.
	Gardenlet = "gardenlet"
	// Operator is the chart of the gardener-operator.
	Operator = "operator"
	// ProviderHosts is the chart of provider-hosts.
	ProviderHosts = "provider-hosts"
	// ProviderLocal is the chart of provider-local.
	ProviderLocal = "provider-local"
	// ProviderLocalAdmissionRuntime is the chart of the admission controller of provider-local, and ProviderLocalAdmissionApplication the one of what it
	// may do in the virtual garden.
	ProviderLocalAdmissionRuntime, ProviderLocalAdmissionApplication = "provider-local-admission-runtime", "provider-local-admission-application"
)

// Names returns the names of all charts.
func Names() []string {
	return []string{Gardenlet, Operator, ProviderHosts, ProviderLocal, ProviderLocalAdmissionApplication, ProviderLocalAdmissionRuntime}
}

//go:embed all:gardenlet all:operator all:provider-hosts all:provider-local all:provider-local-admission-application all:provider-local-admission-runtime
var files embed.FS

// defaultRepository is that of the image with all processes of Gardener in the values of charts.
const defaultRepository = "registry.local.gardener.cloud/gardener/gardener"

// Release is what a chart is released with.
type Release struct {
	// Version is the version of the chart, and of what it installs.
	Version string
	// Repository is that of the image with all processes of Gardener, which has the version as a tag.
	Repository string
}

var (
	versions   = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)
	repository = regexp.MustCompile(`(?m)^(  repository): ` + regexp.QuoteMeta(defaultRepository) + `$`)
)

// Archive returns a chart as a gzipped tar archive. The same chart gives the same bytes.
func Archive(name string) ([]byte, error) {
	return archive(name, func(_ string, content []byte) []byte { return content })
}

// Released is Archive for a release, and returns Chart.yaml too.
func Released(name string, release Release) (archived, metadata []byte, err error) {
	archived, err = archive(name, func(file string, content []byte) []byte {
		switch file {
		case "Chart.yaml":
			content = versions.ReplaceAll(content, []byte("$1: "+release.Version))
			metadata = content
		case "values.yaml":
			content = repository.ReplaceAll(content, []byte("$1: "+release.Repository))
		}
		return content
	})
	return archived, metadata, err
}

// archive archives a chart, with what change makes of its files.
func archive(name string, change func(file string, content []byte) []byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	err := fs.WalkDir(files, name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		content = change(strings.TrimPrefix(path, name+"/"), content)
		if err := archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
