package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// shootSubresources are the subresources of shoots besides the status.
func shootSubresources(main *strategyStore, settings Settings) map[string]rest.Storage {
	return map[string]rest.Storage{
		"binding":          main.view(bindingStrategy{main.strategy}),
		"adminkubeconfig":  newAdminKubeconfig(settings),
		"viewerkubeconfig": newViewerKubeconfig(settings),
	}
}

// bindingStrategy is how schedulers and operators bind a shoot to a seed: an update of the shoot that changes spec.seedName, under
// a right of its own. What such an update may change, admission decides.
type bindingStrategy struct{ strategy }

// PrepareForUpdate keeps the status. A new seed is a new generation even if changes wait for the maintenance time window.
func (s bindingStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	clearType(obj)
	part(obj, "Status").Set(part(old, "Status"))
	count(obj, old, !sameContent(obj, old))
}

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy. Two schedulers must not both bind a shoot.
func (s bindingStrategy) AllowUnconditionalUpdate() bool { return false }
