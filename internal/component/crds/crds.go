// Package crds has the CustomResourceDefinitions of Gardener's API groups, generated from the Go types in api/, those of the Gateway API and of the
// Vertical Pod Autoscaler, as their authors publish them, and those of other projects without schemas, which are written by hand. Those that authors of
// extensions need for tests are in pkg/extension/crds.
package crds

import (
	"embed"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	extensioncrds "gardener.cloud/gardener/pkg/extension/crds"
)

//go:embed autoscaling/*.yaml dashboard/*.yaml druid/*.yaml gateway/*.yaml machine/*.yaml operator/*.yaml verticalpodautoscaler/*.yaml
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
func Extensions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return extensioncrds.Extensions()
}

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
func Resources() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return extensioncrds.Resources()
}

// VerticalPodAutoscaler returns the definitions of autoscaling.k8s.io that a vertical pod autoscaler needs.
func VerticalPodAutoscaler() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return read("verticalpodautoscaler")
}

// read decodes the manifests in a directory of this package.
func read(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return extensioncrds.Read(manifests, dir)
}
