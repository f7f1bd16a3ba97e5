// Package apiserverproxy deploys apiserver-proxy, which connects the pods of a shoot to their kube-apiserver: a process on each node that listens
// on the address which the kube-apiserver advertises, and forwards connections through the tunnel. The objects are for a ManagedResource.
package apiserverproxy

import (
	"net/netip"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Name is the name of the DaemonSet.
	Name = "apiserver-proxy"

	// port is that of the kube-apiserver.
	port = 443
	// healthPort is a port of the node, so it has to be free there.
	healthPort = 16910
	secretDir  = "/srv/tunnel"
)

// AdvertiseAddress is the address that the kube-apiserver of a shoot advertises. It has to be of the preferred IP family, or the kube-apiserver
// does not start. It is in a range that no network may have (240.0.0.0/8 and the range of the tunnel are reserved), and not link-local, which
// Endpoints do not allow.
func AdvertiseAddress(networks systemcomponent.Networks) netip.Addr {
	if networks.PreferIPv6() {
		return netip.MustParsePrefix(constants.DefaultVPNRangeV6).Addr().Next()
	}
	return netip.MustParseAddr("240.0.0.1")
}

// Values are what the proxy is deployed with.
type Values struct {
	// Address is AdvertiseAddress.
	Address netip.Addr
	// Image is the image with all processes of Gardener.
	Image string
	// Server is the address of the seed's gateway, as HOST:PORT: the name of the kube-apiserver, which nodes can resolve.
	Server string
	// ServerName is the server name (SNI) of the tunnel.
	ServerName string
	// Certificate and Key are the client certificate of the proxy and its key, CABundle is the CA bundle of the tunnel. All are PEM.
	Certificate, Key, CABundle []byte
}

// Objects renders the proxy for the namespace kube-system of the shoot.
func Objects(v Values) ([]client.Object, error) {
	secret := immutable.Secret(metav1.NamespaceSystem, Name, map[string][]byte{
		secrets.DataKeyCertificate: v.Certificate, secrets.DataKeyPrivateKey: v.Key, secrets.DataKeyCertificateBundle: v.CABundle,
	})
	probe := func(path string) *corev1.Probe { return workload.HTTPProbe(path, healthPort, corev1.URISchemeHTTP) }
	labels := map[string]string{
		constants.App: Name, constants.GardenRole: constants.GardenRoleSystemComponent, constants.NodeCriticalComponent: "true",
	}
	w := workload.Workload{
		Name: Name, Namespace: metav1.NamespaceSystem, Labels: map[string]string{constants.App: Name}, PodLabels: labels,
		PriorityClass: "system-node-critical", HostNetwork: true,
		Container: corev1.Container{
			Image: v.Image,
			Args: []string{
				Name, "--server=" + v.Server, "--server-name=" + v.ServerName, "--bind=" + netip.AddrPortFrom(v.Address, port).String(),
				"--certificate-directory=" + secretDir, "--ca-file=" + secretDir + "/" + secrets.DataKeyCertificateBundle,
				"--health-port=" + strconv.Itoa(healthPort),
			},
			ReadinessProbe: probe("/readyz"), StartupProbe: workload.Eager(probe("/healthz")), LivenessProbe: probe("/healthz"),
			Ports:     []corev1.ContainerPort{{Name: "metrics", ContainerPort: healthPort, HostPort: healthPort, Protocol: corev1.ProtocolTCP}},
			Resources: workload.Requests("10m", "30Mi"),
			// It adds an address to the loopback device, and listens on a privileged port.
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsUser: new(int64(0)),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_BIND_SERVICE"}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "tunnel", MountPath: secretDir, ReadOnly: true}},
		},
		Volumes: []corev1.Volume{workload.SecretVolume("tunnel", secret.Name)},
	}
	w.Container.ReadinessProbe.PeriodSeconds = 2 // a new node waits for it
	daemonSet := w.DaemonSet()
	daemonSet.Labels = labels
	daemonSet.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString("20%"))},
	}
	pod := &daemonSet.Spec.Template.Spec
	pod.AutomountServiceAccountToken = new(false)
	pod.DNSPolicy = corev1.DNSDefault // the DNS of the cluster needs the API server
	pod.TerminationGracePeriodSeconds = new(int64(5))
	if err := references.Inject(daemonSet, nil); err != nil {
		return nil, err
	}
	account := w.ServiceAccount()
	account.AutomountServiceAccountToken = new(false)
	return []client.Object{account, secret, daemonSet}, nil
}
