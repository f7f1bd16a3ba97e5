// Package crds has the CustomResourceDefinitions of the objects that the gardenlet and extensions exchange, for clusters in which extensions are tested. They
// are generated from the Go types in api/.
package crds

import (
	"embed"
	"fmt"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed extensions/*.yaml resources/*.yaml
var manifests embed.FS

// Extensions returns the definitions of extensions.gardener.cloud.
func Extensions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return Read(manifests, "extensions")
}

// Resources returns the definition of ManagedResources.
func Resources() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return Read(manifests, "resources")
}

// Read decodes the manifests in a directory, sorted by name. Callers may change the result.
func Read(manifests embed.FS, dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := manifests.ReadDir(dir) // sorted by file name, which is <group>_<plural>.yaml
	if err != nil {
		return nil, fmt.Errorf("list manifests of %s: %w", dir, err)
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		data, err := manifests.ReadFile(path.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", entry.Name(), err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("decode manifest %s: %w", entry.Name(), err)
		}
		out = append(out, crd)
	}
	return out, nil
}
