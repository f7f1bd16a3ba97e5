package addon

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/flannel"
)

// podNetwork connects the pods of all nodes. Machines of a landscape share one network, so plain routes do.
func podNetwork(v Values) ([]client.Object, error) {
	image, err := v.image("flannel")
	if err != nil {
		return nil, err
	}
	return flannel.Objects(flannel.Values{
		Image: image, Pods: v.Pods, Backend: flannel.HostGateway, ClusterRole: "landscape:" + flannel.Name, APIServer: v.APIServer,
	})
}
