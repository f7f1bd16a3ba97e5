package credentials

import (
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/pkg/secrets"
)

// ofShoot has the credentials of the control plane of a shoot. All of them are rotated by operations only.
var ofShoot = inventory{
	identity: "gardenlet",
	cas: []authority{
		{name: constants.SecretNameCAETCD, commonName: "etcd", step: inEtcd},
		{name: constants.SecretNameCAETCDPeer, commonName: "etcd-peer", step: inEtcd},
		{name: constants.SecretNameCACluster, commonName: "kubernetes"},
		{name: constants.SecretNameCAClient, commonName: "kubernetes-client"},
		{name: constants.SecretNameCAFrontProxy, commonName: "front-proxy"},
		{name: constants.SecretNameCAKubelet, commonName: "kubelet", needsWorkers: true},
		{name: constants.SecretNameCAMetricsServer, commonName: "metrics-server", needsWorkers: true},
		{name: constants.SecretNameCAVPN, commonName: "vpn", needsWorkers: true},
	},
	certificates: map[step]func(Values) []certificate{inEtcd: etcdCertificates, inRest: shootCertificates},
	keys:         shootKeys,
}

func shootCertificates(v Values) []certificate {
	list := append(apiServerCertificates(v),
		server(ResourceManager, constants.SecretNameCACluster, "gardener-resource-manager", "gardener-resource-manager", v.Namespace))
	if v.TerminatesTLS {
		// The name is the one that kube-apiserver allows a proxy to have.
		list = append(list, certificate{name: GatewayProxy, ca: constants.SecretNameCAFrontProxy, commonName: kubeapiserver.AggregatorUserName, usage: secrets.ClientCert})
	}
	if !v.Workers {
		return list
	}
	tunnel := server(VPNSeedServer, constants.SecretNameCAVPN, "vpn-seed-server", "vpn-seed-server", v.Namespace)
	tunnel.hosts, tunnel.addresses = append(tunnel.hosts, v.TunnelHostName), loopback()
	if v.VerticalPodAutoscaler {
		list = append(list, server(VPAAdmissionController, constants.SecretNameCACluster, "vpa-admission-controller", "vpa-webhook", v.Namespace))
	}
	return append(list, tunnel,
		server(KubeScheduler, constants.SecretNameCACluster, "kube-scheduler", "kube-scheduler", v.Namespace),
		server(MetricsServer, constants.SecretNameCAMetricsServer, "metrics-server", "metrics-server", "kube-system"),
		certificate{name: KubeAPIServerKubelet, ca: constants.SecretNameCAKubelet, commonName: "system:kube-apiserver:kubelet", usage: secrets.ClientCert},
		certificate{name: HTTPProxyClient, ca: constants.SecretNameCAVPN, commonName: "kube-apiserver-http-proxy", usage: secrets.ClientCert},
		certificate{name: VPNShootClient, ca: constants.SecretNameCAVPN, commonName: "vpn-shoot-client", usage: secrets.ClientCert},
		certificate{name: APIServerProxy, ca: constants.SecretNameCAVPN, commonName: "apiserver-proxy-client", usage: secrets.ClientCert},
	)
}

func shootKeys(v Values) []key {
	list := []key{serviceAccountKey(v), etcdEncryptionKey(v, constants.SecretNameETCDEncryptionKey)}
	if v.SSHKey {
		// The old one stays, as nodes trust the new one only after they have applied their OperatingSystemConfig.
		list = append(list, key{
			&secrets.SSHKeyPair{Name: constants.SecretNameSSHKeyPair, RSABits: 4096}, v.Rotation.SSHKeyPair,
			[]secrets.Option{secrets.Persist(), secrets.KeepOld()},
		})
	}
	if v.Monitoring {
		list = append(list, key{
			&secrets.Password{Name: constants.SecretNameObservabilityIngressUsers, Username: monitoringUser}, v.Rotation.Observability,
			[]secrets.Option{secrets.Persist()},
		})
	}
	return list
}
