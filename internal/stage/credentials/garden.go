package credentials

import (
	"slices"
	"time"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/pkg/secrets"
)

// Names of credentials that only a garden has.
const (
	RuntimeResourceManager    = "gardener-resource-manager-runtime-server"
	GardenerAPIServer         = "gardener-apiserver"
	AdmissionController       = "gardener-admission-controller"
	AdmissionControllerClient = "gardener-admission-controller-client"
	DiscoveryServer           = "gardener-discovery-server"
)

// runtimeCAValidity is the validity of the CA for components of the runtime cluster. It is renewed by itself, as its clients are all
// configured by gardener-operator.
const runtimeCAValidity = 30 * 24 * time.Hour

// ofGarden has the credentials of a garden: those of the control plane of the virtual cluster, and of components of Gardener. All of them are
// rotated by operations only, except those for the runtime cluster.
var ofGarden = inventory{
	identity: operatorv1alpha1.SecretManagerIdentityOperator,
	cas: []authority{
		{name: operatorv1alpha1.SecretNameCARuntime, commonName: "garden-runtime", step: inRuntime, validity: runtimeCAValidity},
		{name: constants.SecretNameCAETCD, commonName: "etcd", step: inEtcd},
		{name: constants.SecretNameCAETCDPeer, commonName: "etcd-peer", step: inEtcd},
		{name: constants.SecretNameCACluster, commonName: "kubernetes"},
		{name: constants.SecretNameCAClient, commonName: "kubernetes-client"},
		{name: constants.SecretNameCAFrontProxy, commonName: "front-proxy"},
		// The kube-apiserver is a client of gardener-admission-controller and gardener-apiserver, and is deployed before them.
		{name: operatorv1alpha1.SecretNameCAGardener, commonName: "gardener", stepwise: true},
	},
	certificates: map[step]func(Values) []certificate{inRuntime: runtimeCertificates, inEtcd: etcdCertificates, inRest: gardenCertificates},
	keys:         gardenKeys,
}

func runtimeCertificates(v Values) []certificate {
	const ca = operatorv1alpha1.SecretNameCARuntime
	return append(v.servers(ca), server(RuntimeResourceManager, ca, "gardener-resource-manager", "gardener-resource-manager", v.Namespace))
}

// servers are the certificates of Servers that a CA signs.
func (v Values) servers(ca string) []certificate {
	var list []certificate
	for _, s := range v.Servers {
		if s.CA == ca {
			list = append(list, certificate{name: s.Name, ca: ca, commonName: s.Name, usage: secrets.ServerCert, hosts: s.Hosts})
		}
	}
	return list
}

func gardenCertificates(v Values) []certificate {
	const ca = operatorv1alpha1.SecretNameCAGardener
	// The kube-apiserver of the virtual cluster aggregates the Service there, and others use the one beside the pods.
	apiServer := server(GardenerAPIServer, ca, "gardener-apiserver", "gardener-apiserver", v.Namespace)
	apiServer.hosts = append(apiServer.hosts, serviceNames("gardener-apiserver", "kube-system")[1:]...)
	list := slices.Concat(apiServerCertificates(v), v.servers(ca), []certificate{
		server(
			ResourceManager, operatorv1alpha1.SecretNameCARuntime, "gardener-resource-manager", v.Of.Name("gardener-resource-manager"), v.Namespace),
		apiServer,
		server(AdmissionController, ca, "gardener-admission-controller", "gardener-admission-controller", v.Namespace),
		// The kube-apiserver asks it for the authorization of requests with this one.
		{name: AdmissionControllerClient, ca: ca, commonName: "kube-apiserver", usage: secrets.ClientCert},
	})
	if v.DiscoveryHostName != "" {
		discovery := server(DiscoveryServer, ca, "gardener-discovery-server", "gardener-discovery-server", v.Namespace)
		discovery.hosts = append(discovery.hosts, v.DiscoveryHostName)
		list = append(list, discovery)
	}
	return list
}

func gardenKeys(v Values) []key {
	identity := v.Rotation.WorkloadIdentityKey
	return []key{
		serviceAccountKey(v),
		etcdEncryptionKey(v, constants.SecretNameETCDEncryptionKey), etcdEncryptionKey(v, operatorv1alpha1.SecretNameGardenerETCDEncryptionKey),
		{
			&secrets.PrivateKey{Name: operatorv1alpha1.SecretNameWorkloadIdentityKey, RSABits: 4096}, identity,
			[]secrets.Option{secrets.Persist(), secrets.KeepOld(), keep(identity.Phase)},
		},
		{
			&secrets.Password{Name: operatorv1alpha1.SecretNameObservabilityIngress, Username: monitoringUser}, v.Rotation.Observability,
			[]secrets.Option{secrets.Persist()},
		},
	}
}
