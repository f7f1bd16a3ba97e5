package values

import (
	"cmp"
	"math"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/apiserverproxy"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/component/kubeproxy"
	"gardener.cloud/gardener/internal/component/metricsserver"
	"gardener.cloud/gardener/internal/component/nodelocaldns"
	"gardener.cloud/gardener/internal/component/nodeproblemdetector"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/vpnseedserver"
	"gardener.cloud/gardener/internal/component/vpnshoot"
	"gardener.cloud/gardener/internal/stage/credentials"
)

// httpsPort is that of the gateway of the seed.
const httpsPort = "443"

// server is the address at which nodes reach the control plane.
func (s Source) server() string { return net.JoinHostPort(s.Hosts()[0], httpsPort) }

// TunnelServer returns the values of the vpn-seed-server with a number of pods.
func (s Source) TunnelServer(replicas int32) (vpnseedserver.Values, error) {
	image, set, err := s.gardenerImageAndCredentials()
	if err != nil {
		return vpnseedserver.Values{}, err
	}
	return vpnseedserver.Values{
		Namespace: s.Namespace, Image: image, Replicas: replicas, Spread: s.Spread(),
		ServerSecret: set.Name(credentials.VPNSeedServer), CASecret: set.BundleName(constants.SecretNameCAVPN), Host: s.TunnelHost(),
		Nodes: mostNodes(s.Shoot), Gateway: s.Gateway, OtherGateways: s.OtherGateways,
	}, nil
}

// mostNodes is how many nodes a shoot can have, also while they are replaced.
func mostNodes(shoot *corev1beta1.Shoot) int32 {
	var n int64 // each maximum may be that of its type
	for _, worker := range shoot.Spec.Provider.Workers {
		surge, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(worker.MaxSurge, new(intstr.FromInt32(1))), int(worker.Maximum), true)
		if err != nil {
			surge = 1 // it has been validated
		}
		n += int64(worker.Maximum) + int64(surge)
	}
	return int32(min(n, math.MaxInt32)) //nolint:gosec // checked here
}

// TunnelAgent returns the values of the vpn-shoot.
func (s Source) TunnelAgent() (vpnshoot.Values, error) {
	image, set, err := s.gardenerImageAndCredentials()
	if err != nil {
		return vpnshoot.Values{}, err
	}
	networks, err := s.allNetworks()
	if err != nil {
		return vpnshoot.Values{}, err
	}
	certificate, key := keyPair(set, credentials.VPNShootClient)
	return vpnshoot.Values{
		Image: image, Replicas: s.Replicas(), Server: s.server(), ServerName: s.TunnelHost(),
		Certificate: certificate, Key: key,
		CABundle: set.Bundle(constants.SecretNameCAVPN), Networks: networks,
	}, nil
}

// APIServerProxy returns the values of the API server proxy of each node.
func (s Source) APIServerProxy() (apiserverproxy.Values, error) {
	image, set, err := s.gardenerImageAndCredentials()
	if err != nil {
		return apiserverproxy.Values{}, err
	}
	shoot, err := s.shoot()
	if err != nil {
		return apiserverproxy.Values{}, err
	}
	certificate, key := keyPair(set, credentials.APIServerProxy)
	networks, err := systemcomponent.NetworksOf(shoot)
	if err != nil {
		return apiserverproxy.Values{}, err
	}
	return apiserverproxy.Values{
		Address: apiserverproxy.AdvertiseAddress(networks), Image: image, Server: s.server(), ServerName: s.TunnelHost(),
		Certificate: certificate, Key: key,
		CABundle: set.Bundle(constants.SecretNameCAVPN),
	}, nil
}

// allNetworks returns the ranges of nodes, pods and Services.
func (s Source) allNetworks() ([]string, error) {
	n, err := s.networks()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(n.Nodes, n.Pods, n.Services)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// CoreDNS returns the values of CoreDNS.
func (s Source) CoreDNS() (coredns.Values, error) {
	shoot, err := s.shoot()
	if err != nil {
		return coredns.Values{}, err
	}
	v, err := coredns.For(shoot)
	if err != nil {
		return v, err
	}
	v.Cores = cores(s.State)
	v.Image, err = s.image("coredns")
	return v, err
}

// MetricsServer returns the values of the metrics-server.
func (s Source) MetricsServer() (metricsserver.Values, error) {
	image, set, err := s.imageAndCredentials("metrics-server")
	if err != nil {
		return metricsserver.Values{}, err
	}
	certificate, key := keyPair(set, credentials.MetricsServer)
	return metricsserver.Values{
		Image: image, Certificate: certificate, Key: key,
		CABundle: set.Bundle(constants.SecretNameCAMetricsServer), KubeletCABundle: set.Bundle(constants.SecretNameCAKubelet),
	}, nil
}

// NodeProblemDetector returns the values of the node-problem-detector.
func (s Source) NodeProblemDetector() (nodeproblemdetector.Values, error) {
	image, err := s.gardenerImage()
	return nodeproblemdetector.Values{Image: image, APIServer: s.Hosts()[0]}, err
}

// NodeLocalDNS returns the values of the node-local-dns.
func (s Source) NodeLocalDNS() (nodelocaldns.Values, error) {
	shoot, err := s.shoot()
	if err != nil {
		return nodelocaldns.Values{}, err
	}
	v, err := nodelocaldns.For(shoot)
	if err != nil {
		return v, err
	}
	if v.Image, err = s.image("coredns"); err != nil {
		return v, err
	}
	v.SetupImage, err = s.image("kube-proxy")
	return v, err
}

// KubeProxy returns the values of kube-proxy for all pools, and for the versions of the nodes that exist.
func (s Source) KubeProxy(nodes []corev1.Node) (kubeproxy.Values, error) {
	set, err := s.Credentials.All()
	if err != nil {
		return kubeproxy.Values{}, err
	}
	shoot, err := s.shoot()
	if err != nil {
		return kubeproxy.Values{}, err
	}
	v, err := kubeproxy.For(shoot, nodes, func(version, architecture string) (string, error) {
		image, err := s.Images.Find("kube-proxy", imagevector.Query{TargetVersion: version, Architecture: architecture})
		return image.String(), err
	})
	if err != nil {
		return v, err
	}
	v.APIServer, v.CABundle = s.Hosts()[0], set.Bundle(constants.SecretNameCACluster)
	return v, nil
}
