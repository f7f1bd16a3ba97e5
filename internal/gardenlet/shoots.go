package gardenlet

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
)

// connectShoot returns a client for a shoot. Flows and their waits use it, so that its requests have no rate limit.
func (a *agent) connectShoot(config *rest.Config) (client.WithWatch, error) {
	config = rest.AddUserAgent(config, Name)
	config.QPS = -1
	kube.LimitResponses(config, kube.MaxShootResponse)
	return client.NewWithWatch(config, client.Options{Scheme: a.GetScheme()})
}

// discoverTimeout is the end of the discovery of a shoot.
const discoverTimeout = 15 * time.Second

// discoverShoot returns the resources that the API server of a shoot serves, without API groups whose servers do not respond.
func discoverShoot(config *rest.Config) ([]*metav1.APIResourceList, error) {
	config = rest.AddUserAgent(config, Name)
	config.Timeout = discoverTimeout
	kube.LimitResponses(config, kube.MaxShootResponse)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, resources, err := d.ServerGroupsAndResources()
	if discovery.IsGroupDiscoveryFailedError(err) {
		err = nil
	}
	return resources, err
}
