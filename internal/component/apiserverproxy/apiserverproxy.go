// Package apiserverproxy deploys the way from the pods of a shoot to their kube-apiserver: a process on each node that answers at the
// address which the kube-apiserver advertises, and carries each connection through the tunnel. The objects are for a ManagedResource.
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
	"gardener.cloud/gardener/internal/component/immutable"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Name is that of the DaemonSet.
	Name = "apiserver-proxy"

	// port is that of the kube-apiserver.
	port = 443
	// healthPort is one of the node's, so it has to be free there.
	healthPort = 16910
	secretDir  = "/srv/tunnel"
)

// AdvertiseAddress is what the kube-apiserver of a shoot advertises, of the IP family that it prefers, or it would not start. It is of a
// range that is in no network (240.0.0.0/8 and the range of the tunnel are reserved), and not of the link-local ones, which Endpoints may
// not have.
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
	// Image is the image with all our processes.
	Image string
	// Server is where the gateway of the seed is reached, as HOST:PORT: the name of the kube-apiserver, which nodes resolve.
	Server string
	// ServerName is the name that the tunnel is asked for by.
	ServerName string
	// Certificate and Key are those of the proxy, CABundle has the authorities of the tunnel. All are PEM.
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
			// It gives an address to the loopback device, and listens on a low port.
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsUser: new(int64(0)),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_BIND_SERVICE"}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "tunnel", MountPath: secretDir, ReadOnly: true}},
		},
		Volumes: []corev1.Volume{workload.SecretVolume("tunnel", secret.Name)},
	}
	w.Container.ReadinessProbe.PeriodSeconds = 2 // a node waits for it
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
