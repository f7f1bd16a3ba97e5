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
	image, err := s.gardenerImage()
	return vpnseedserver.Values{
		Namespace: s.Namespace, Image: image, Replicas: replicas, Spread: s.Spread(),
		ServerSecret: s.Credentials.Name(credentials.VPNSeedServer), CASecret: s.Credentials.BundleName(constants.SecretNameCAVPN), Host: s.TunnelHost(),
		Nodes: mostNodes(s.Shoot),
	}, err
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
	image, err := s.gardenerImage()
	if err != nil {
		return vpnshoot.Values{}, err
	}
	return vpnshoot.Values{
		Image: image, Replicas: s.Replicas(), Server: s.server(), ServerName: s.TunnelHost(),
		Certificate: s.certificate(credentials.VPNShootClient), Key: s.key(credentials.VPNShootClient),
		CABundle: s.Credentials.Bundle(constants.SecretNameCAVPN), Networks: s.allNetworks(),
	}, nil
}

// APIServerProxy returns the values of the API server proxy of each node.
func (s Source) APIServerProxy() (apiserverproxy.Values, error) {
	image, err := s.gardenerImage()
	if err != nil {
		return apiserverproxy.Values{}, err
	}
	networks, err := systemcomponent.NetworksOf(s.shoot())
	if err != nil {
		return apiserverproxy.Values{}, err
	}
	return apiserverproxy.Values{
		Address: apiserverproxy.AdvertiseAddress(networks), Image: image, Server: s.server(), ServerName: s.TunnelHost(),
		Certificate: s.certificate(credentials.APIServerProxy), Key: s.key(credentials.APIServerProxy),
		CABundle: s.Credentials.Bundle(constants.SecretNameCAVPN),
	}, nil
}

// allNetworks returns the ranges of nodes, pods and Services.
func (s Source) allNetworks() []string {
	n := s.networks()
	all := slices.Concat(n.Nodes, n.Pods, n.Services)
	slices.Sort(all)
	return slices.Compact(all)
}

// CoreDNS returns the values of CoreDNS.
func (s Source) CoreDNS() (coredns.Values, error) {
	v, err := coredns.For(s.shoot())
	if err != nil {
		return v, err
	}
	v.Cores = cores(s.State)
	v.Image, err = s.image("coredns")
	return v, err
}

// MetricsServer returns the values of the metrics-server.
func (s Source) MetricsServer() (metricsserver.Values, error) {
	image, err := s.image("metrics-server")
	if err != nil {
		return metricsserver.Values{}, err
	}
	return metricsserver.Values{
		Image: image, Certificate: s.certificate(credentials.MetricsServer), Key: s.key(credentials.MetricsServer),
		CABundle: s.Credentials.Bundle(constants.SecretNameCAMetricsServer), KubeletCABundle: s.Credentials.Bundle(constants.SecretNameCAKubelet),
	}, nil
}

// NodeLocalDNS returns the values of the node-local-dns.
func (s Source) NodeLocalDNS() (nodelocaldns.Values, error) {
	v, err := nodelocaldns.For(s.shoot())
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
	v, err := kubeproxy.For(s.shoot(), nodes, func(version string) (string, error) {
		image, err := s.Images.Find("kube-proxy", imagevector.Query{TargetVersion: version})
		return image.String(), err
	})
	if err != nil {
		return v, err
	}
	v.APIServer, v.CABundle = s.Hosts()[0], s.Credentials.Bundle(constants.SecretNameCACluster)
	return v, nil
}
