package registry

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"gardener.cloud/gardener/internal/validation/core"
)

// Strategy is how requests for a kind are prepared and validated.
type Strategy struct {
	Create rest.RESTCreateStrategy
	Update rest.RESTUpdateStrategy
	// Status is for the status subresource, nil if the kind has none.
	Status rest.RESTUpdateStrategy
}

// Strategies returns the strategies of all kinds by the version of their hubs, for tests that replay requests without a server.
func Strategies(s *runtime.Scheme, options core.Options) map[schema.GroupVersionKind]Strategy {
	out := map[schema.GroupVersionKind]Strategy{}
	for _, k := range kinds(options) {
		main := strategy{ObjectTyper: s, NameGenerator: names.SimpleNameGenerator, kind: k}
		all := Strategy{Create: main, Update: main}
		if k.status {
			all.Status = statusStrategy{main}
		}
		out[k.gvk] = all
	}
	return out
}
