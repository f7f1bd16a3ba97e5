// Package crds has the CustomResourceDefinitions of Gardener's API groups, generated from the Go types in api/, those of the Gateway API and of the
// Vertical Pod Autoscaler, as their authors publish them, and those of other projects without schemas, which are written by hand.
package crds

import (
	"embed"
	"fmt"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed autoscaling/*.yaml dashboard/*.yaml druid/*.yaml extensions/*.yaml gateway/*.yaml machine/*.yaml operator/*.yaml resources/*.yaml verticalpodautoscaler/*.yaml
//go:embed fluentbit/*.yaml istio/*.yaml monitoring/*.yaml opentelemetry/*.yaml perses/*.yaml victoria/*.yaml
var manifests embed.FS

// Autoscaling returns the definitions of autoscaling.gardener.cloud. Seeds and the runtime cluster need them, although no pvc-autoscaler runs there:
// extensions create objects of them, as of those of Foreign.
func Autoscaling() ([]*apiextensionsv1.CustomResourceDefinition, error) { return read("autoscaling") }

// Dashboard returns the definitions of dashboard.gardener.cloud. The virtual garden needs them if the dashboard has terminals.
func Dashboard() ([]*apiextensionsv1.CustomResourceDefinition, error) { return read("dashboard") }

// Druid returns the definitions of druid.gardener.cloud. Clusters need them where etcd-druid runs.
func Druid() ([]*apiextensionsv1.CustomResourceDefinition, error) { return read("druid") }

// Extensions returns the definitions of extensions.gardener.cloud. Seeds and the runtime cluster need them.
func Extensions() ([]*apiextensionsv1.CustomResourceDefinition, error) { return read("extensions") }

// Foreign returns the definitions of kinds of other projects that seeds and the runtime cluster need, although no controller of Gardener reconciles them:
// extensions create objects of them with each shoot, and none of their objects is applied where one of the kinds is missing. They have no schemas, so
// that a kube-apiserver needs little memory for them. Source: observability.md, section 2, of the compatibility facts.
func Foreign() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, dir := range []string{"fluentbit", "istio", "monitoring", "opentelemetry", "perses", "victoria"} {
		definitions, err := read(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, definitions...)
	}
	return all, nil
}

// Gateway returns the definitions of gateway.networking.k8s.io that the gateway of a seed needs.
func Gateway() ([]*apiextensionsv1.CustomResourceDefinition, error) { return read("gateway") }

// Machine returns the definitions of machine.sapcloud.io. Clusters need them where machine-controller-managers run.
func Machine() ([]*apiextensionsv1.CustomResourceDefinition, error) { return read("machine") }

// Operator returns the definitions of operator.gardener.cloud. The runtime cluster needs them.
func Operator() ([]*apiextensionsv1.CustomResourceDefinition, error) { return read("operator") }

// Resources returns the definitions of resources.gardener.cloud. Clusters need them where gardener-resource-managers run.
func Resources() ([]*apiextensionsv1.CustomResourceDefinition, error) { return read("resources") }

// VerticalPodAutoscaler returns the definitions of autoscaling.k8s.io that a vertical pod autoscaler needs.
func VerticalPodAutoscaler() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return read("verticalpodautoscaler")
}

// read decodes the manifests in a directory, sorted by name. Callers may change the result.
func read(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
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
