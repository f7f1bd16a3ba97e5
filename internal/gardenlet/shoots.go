package gardenlet

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube/decoded"
	"gardener.cloud/gardener/internal/process"
)

// connectShoot returns a client for a shoot.
func (a *agent) connectShoot(config *rest.Config) (client.WithWatch, error) {
	config = rest.AddUserAgent(config, Name)
	process.SetConnection(a.config.ShootClientConnection.ClientConnectionConfiguration)(config)
	decoded.LimitResponses(config, a.GetScheme())
	return client.NewWithWatch(config, client.Options{Scheme: a.GetScheme()})
}

// discoverTimeout is the end of the discovery of a shoot.
const discoverTimeout = 15 * time.Second

// discoverShoot returns the resources that the API server of a shoot serves, without API groups whose servers do not respond. Users decide how many there are.
func discoverShoot(config *rest.Config) ([]*metav1.APIResourceList, error) {
	config = rest.AddUserAgent(config, Name)
	config.Timeout = discoverTimeout
	decoded.LimitResponses(config, clientgoscheme.Scheme)
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
