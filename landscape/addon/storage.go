package addon

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/localstorage"
)

// localStorage provisions volumes as directories of the node that a pod was scheduled to.
func localStorage(v Values) ([]client.Object, error) {
	image, err := v.image("local-storage")
	if err != nil {
		return nil, err
	}
	return append(localstorage.Objects(localstorage.Values{Image: image, ClusterRole: "landscape:" + localstorage.Name}), localstorage.Class()), nil
}
