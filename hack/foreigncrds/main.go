// Command foreigncrds writes the CustomResourceDefinitions of other projects that Gardener deploys, from their modules, without
// descriptions, which are most of their size. Usage: go run ./hack/foreigncrds DIRECTORY ROOT
//
// ROOT is the tree whose go.mod files have the versions.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// sources are the files with definitions.
var sources = []struct {
	// from is the directory whose go.mod has the version of the module.
	from, module, file string
	// to is the directory below the target.
	to string
}{
	{".", "sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_gatewayclasses.yaml", "gateway"},
	{".", "sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_gateways.yaml", "gateway"},
	{".", "sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_tlsroutes.yaml", "gateway"},
	{"distribution/vertical-pod-autoscaler", "k8s.io/autoscaler/vertical-pod-autoscaler", "deploy/vpa-v1-crd-gen.yaml", "verticalpodautoscaler"},
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(target, root string) error {
	content := make([][]byte, len(sources))
	for i, source := range sources {
		module, err := download(filepath.Join(root, source.from), source.module)
		if err != nil {
			return fmt.Errorf("module %s: %w", source.module, err)
		}
		if content[i], err = os.ReadFile(filepath.Join(module, source.file)); err != nil {
			return err
		}
	}
	for _, source := range sources {
		// This also removes manifests of removed kinds.
		if err := os.RemoveAll(filepath.Join(target, source.to)); err != nil {
			return err
		}
	}
	for i, source := range sources {
		for _, document := range bytes.Split(content[i], []byte("\n---\n")) {
			if err := write(filepath.Join(target, source.to), document); err != nil {
				return fmt.Errorf("%s of module %s: %w", source.file, source.module, err)
			}
		}
	}
	return nil
}

// download returns the directory of a module, in the version of the go.mod in another directory. It may not have been needed on this computer yet.
func download(from, module string) (string, error) {
	list := exec.Command("go", "mod", "download", "-json", module)
	list.Dir, list.Stderr = from, os.Stderr
	out, err := list.Output()
	if err != nil {
		return "", err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return "", err
	}
	return found.Dir, nil
}

// write writes a definition to a file of its name.
func write(target string, document []byte) error {
	var definition struct {
		Spec struct {
			Group string
			Names struct{ Plural string }
		}
	}
	var content map[string]any
	for _, into := range []any{&definition, &content} {
		if err := yaml.Unmarshal(document, into); err != nil {
			return err
		}
	}
	trim(content)
	delete(content, "status")
	data, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o755); err != nil { //nolint:gosec // it is source
		return err
	}
	name := definition.Spec.Group + "_" + definition.Spec.Names.Plural + ".yaml"
	return os.WriteFile(filepath.Join(target, name), data, 0o644) //nolint:gosec // it is source
}

// trim removes descriptions, which are strings; a property of that name is an object.
func trim(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		for _, inner := range v {
			trim(inner)
		}
	case []any:
		for _, inner := range v {
			trim(inner)
		}
	}
}
