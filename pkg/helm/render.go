// Package helm renders Helm charts to objects, without Helm's releases and hooks.
package helm

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

// Release has the inputs of a chart.
type Release struct {
	// Name and Namespace are what templates see as .Release.
	Name, Namespace string
	// Kubernetes is the version of the cluster.
	Kubernetes version.Info
	// Values override those of the chart.
	Values map[string]any
}

// KubernetesVersion returns a version, such as 1.36.3, in the form in which charts see that of a cluster.
func KubernetesVersion(text string) (version.Info, error) {
	parsed, err := utilversion.ParseGeneric(text)
	if err != nil {
		return version.Info{}, err
	}
	return version.Info{Major: fmt.Sprint(parsed.Major()), Minor: fmt.Sprint(parsed.Minor()), GitVersion: "v" + strings.TrimPrefix(text, "v")}, nil
}

// Error is an error of a chart. It may quote values and what templates make of them.
type Error struct {
	// At is which part of the chart the error is about, such as a line of a template. It quotes no values.
	At  string
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.At + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// position is where Helm says which line of which template an error is about. It is in front of what values can change.
var position = regexp.MustCompile(`^(?:template: |(?:execution|parse) error at \()([^\s:()]+(?::\d+)*)`)

// renderError returns the error of Helm for the templates of a chart.
func renderError(name string, err error) error {
	at := fmt.Sprintf("render chart %q", name)
	if match := position.FindStringSubmatch(err.Error()); match != nil {
		at += ", " + match[1]
	}
	return &Error{At: at, Err: err}
}

// Render returns the objects of a chart, which is a gzipped tar archive: first the CRDs, then the others in the order of their files. Templates
// cannot look up objects in a cluster.
func Render(archive []byte, r Release) ([]*unstructured.Unstructured, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	return render(loaded, r)
}

// AppVersion returns the version of what a chart installs, or "" if the chart does not say it. The chart is a gzipped tar archive.
func AppVersion(archive []byte) (string, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return "", fmt.Errorf("read chart: %w", err)
	}
	return loaded.AppVersion(), nil
}

// RenderDirectory is Render for a chart in a directory, such as one that is embedded in the binary.
func RenderDirectory(directory fs.FS, r Release) ([]*unstructured.Unstructured, error) {
	var files []*loader.BufferedFile
	err := fs.WalkDir(directory, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(directory, path)
		files = append(files, &loader.BufferedFile{Name: path, Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	return render(loaded, r)
}

// render returns the objects of a chart that is loaded.
func render(loaded *chart.Chart, r Release) ([]*unstructured.Unstructured, error) {
	if err := chartutil.ProcessDependencies(loaded, r.Values); err != nil {
		return nil, &Error{At: fmt.Sprintf("process dependencies of chart %q", loaded.Name()), Err: err}
	}
	capabilities := *chartutil.DefaultCapabilities
	capabilities.KubeVersion = chartutil.KubeVersion{Version: r.Kubernetes.GitVersion, Major: r.Kubernetes.Major, Minor: r.Kubernetes.Minor}
	values, err := chartutil.ToRenderValues(loaded, r.Values, chartutil.ReleaseOptions{
		Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true,
	}, &capabilities)
	if err != nil {
		return nil, &Error{At: fmt.Sprintf("values for chart %q", loaded.Name()), Err: err}
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		return nil, renderError(loaded.Name(), err)
	}
	var objects []*unstructured.Unstructured
	for _, definition := range loaded.CRDObjects() {
		decoded, err := decode(definition.Filename, string(definition.File.Data))
		if err != nil {
			return nil, err
		}
		objects = append(objects, decoded...)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if base := path.Base(file); strings.HasPrefix(base, "_") || base == "NOTES.txt" {
			continue
		}
		decoded, err := decode(file, files[file])
		if err != nil {
			return nil, err
		}
		objects = append(objects, decoded...)
	}
	return objects, nil
}

// decode returns the objects in a file with YAML documents.
func decode(file, content string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+content, "\n---") {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &content); err != nil {
			return nil, &Error{At: file + " is not valid YAML", Err: err}
		}
		if len(content) == 0 {
			continue
		}
		object := &unstructured.Unstructured{Object: content}
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("%s has an object without apiVersion, kind or metadata.name", file)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
