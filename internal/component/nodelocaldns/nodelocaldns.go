// Package nodelocaldns deploys a DNS cache on each node of a shoot.
//
// The cache is CoreDNS, in the network of the node, at an address that is local to the node and the same on all of them. Kubelets configure that
// address in pods, which keep it: when caches are enabled or disabled, machines are replaced, and nodes with pods that use the cache keep it
// until then.
package nodelocaldns

import (
	_ "embed"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// ManagedResourceName is the name of the ManagedResource with all objects.
	ManagedResourceName = "shoot-core-node-local-dns"
	// Name is the name of the DaemonSet.
	Name = "node-local-dns"

	healthPort, metricsPort = 8099, 9253

	// minReadySeconds is how long a new pod has to run before the old one ends. The old one may answer the probes of the new one, so only that its
	// container does not end says that it works.
	minReadySeconds = 5

	configVolume, configDir = "config", "/etc/coredns"
	priority                = "system-node-critical"
)

// Values are what the cache is deployed with.
type Values struct {
	// Image is the image of CoreDNS.
	Image string
	// SetupImage is an image with a shell, ip and nft, such as that of kube-proxy.
	SetupImage string
	// Address is the address of the cache.
	Address netip.Addr
	// ClusterDNS are the addresses of the cluster's DNS server.
	ClusterDNS []netip.Addr
	// ClusterOverTCP and UpstreamOverTCP say whether queries to the cluster's DNS server and to the resolver of the node use TCP.
	ClusterOverTCP, UpstreamOverTCP bool
	// ClusterOnly says that all queries go to the cluster's DNS server, and none to the resolver of the node.
	ClusterOnly bool
}

// Enabled says whether a Shoot has the cache.
func Enabled(shoot *corev1beta1.Shoot) bool {
	c := shoot.Spec.SystemComponents
	return c != nil && c.NodeLocalDNS != nil && c.NodeLocalDNS.Enabled
}

// NodeLabels are those of nodes whose pods use the cache.
func NodeLabels() map[string]string { return map[string]string{constants.NodeLocalDNS: "true"} }

// Address returns the address of the cache in a cluster, which kubelets configure in pods.
func Address(networks systemcomponent.Networks) netip.Addr {
	if networks.PreferIPv6() {
		return netip.MustParseAddr("fd30:1319:f1e:230b::1")
	}
	return netip.MustParseAddr("169.254.20.10")
}

// For returns the values for a Shoot that has the cache, without the images.
func For(shoot *corev1beta1.Shoot) (Values, error) {
	networks, err := systemcomponent.NetworksOf(shoot)
	if err != nil {
		return Values{}, err
	}
	v := Values{Address: Address(networks), ClusterDNS: networks.DNS(), ClusterOverTCP: true, UpstreamOverTCP: true}
	if c := shoot.Spec.SystemComponents; c != nil && c.NodeLocalDNS != nil {
		v.ClusterOverTCP = ptr.Deref(c.NodeLocalDNS.ForceTCPToClusterDNS, true)
		v.UpstreamOverTCP = ptr.Deref(c.NodeLocalDNS.ForceTCPToUpstreamDNS, true)
		v.ClusterOnly = ptr.Deref(c.NodeLocalDNS.DisableForwardToUpstreamDNS, false)
	}
	return v, nil
}

var (
	//go:embed Corefile.tmpl
	corefileText string
	//go:embed setup.sh.tmpl
	setupText string

	templates = template.Must(template.Must(template.New("Corefile").Parse(corefileText)).New("setup").Parse(setupText))
)

// Objects renders the cache.
func Objects(v Values) ([]client.Object, error) {
	corefile, err := v.render("Corefile")
	if err != nil {
		return nil, err
	}
	setup, err := v.render("setup")
	if err != nil {
		return nil, err
	}
	config := immutable.ConfigMap(metav1.NamespaceSystem, Name, map[string]string{"Corefile": corefile})
	config.Labels = workload.Merge(systemcomponent.Labels(), config.Labels)
	w := v.workload(config.Name)
	daemonSet := w.DaemonSet()
	daemonSet.Labels = workload.Merge(systemcomponent.Labels(), w.Labels, map[string]string{constants.NodeCriticalComponent: "true"})
	daemonSet.Spec.UpdateStrategy, daemonSet.Spec.MinReadySeconds = rollout(), minReadySeconds
	pod := &daemonSet.Spec.Template.Spec
	pod.DNSPolicy = corev1.DNSDefault
	pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == customVolume })].ConfigMap.Optional = new(true)
	pod.NodeSelector = NodeLabels()
	pod.AutomountServiceAccountToken = new(false)
	pod.InitContainers = []corev1.Container{{
		Name: "setup", Image: v.SetupImage, Command: []string{"/bin/sh", "-ec", setup},
		Resources: workload.Requests("5m", "16Mi"),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsUser: new(int64(0)),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}},
		},
	}}
	if err := references.Inject(daemonSet, nil); err != nil {
		return nil, err
	}
	return []client.Object{w.ServiceAccount(), config, daemonSet}, nil
}

// rollout starts the new pod of a node before the old one ends, so that the cache always answers. All sockets of CoreDNS have SO_REUSEPORT: both pods
// listen at the same addresses, and the old one answers until its time as a lame duck is over.
func rollout() appsv1.DaemonSetUpdateStrategy {
	return appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: new(intstr.FromString("10%")), MaxUnavailable: new(intstr.FromInt32(0))},
	}
}

func (v Values) workload(config string) workload.Workload {
	probe := workload.HTTPProbe("/health", healthPort, corev1.URISchemeHTTP)
	probe.HTTPGet.Host = v.Address.String()
	return workload.Workload{
		Name: Name, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": Name},
		PodLabels:     workload.Merge(systemcomponent.PodLabels(), map[string]string{constants.NodeCriticalComponent: "true"}),
		PriorityClass: priority, HostNetwork: true,
		Container: corev1.Container{
			Image: v.Image,
			Args:  []string{"-conf", configDir + "/Corefile"},
			// Without ports: those of pods in the network of the node are reserved, and two pods could not run at once.
			Resources:     workload.Requests("25m", "32Mi"),
			StartupProbe:  workload.Eager(probe),
			LivenessProbe: probe, ReadinessProbe: probe.DeepCopy(),
			// Port 53 of the node is privileged.
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsUser: new(int64(0)),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: configVolume, MountPath: configDir, ReadOnly: true}, {Name: customVolume, MountPath: configDir + "/custom", ReadOnly: true},
			},
		},
		Volumes: []corev1.Volume{workload.ConfigMapVolume(configVolume, config), workload.ConfigMapVolume(customVolume, customName)},
	}
}

func (v Values) render(name string) (string, error) {
	servers := make([]string, 0, len(v.ClusterDNS))
	for _, address := range v.ClusterDNS {
		servers = append(servers, address.String())
	}
	cluster, upstream := strings.Join(servers, " "), "/etc/resolv.conf"
	upstreamOverTCP := v.UpstreamOverTCP
	if v.ClusterOnly {
		upstream, upstreamOverTCP = cluster, v.ClusterOverTCP
	}
	family := "ip"
	if v.Address.Is6() {
		family = "ip6"
	}
	out := &strings.Builder{}
	err := templates.ExecuteTemplate(out, name, map[string]any{
		"Domain": systemcomponent.Domain, "Address": v.Address.String(), "Bits": v.Address.BitLen(), "Family": family,
		"Health":  netip.AddrPortFrom(v.Address, healthPort).String(),
		"Metrics": ":" + strconv.Itoa(metricsPort),
		"Cluster": cluster, "ClusterOverTCP": v.ClusterOverTCP, "Upstream": upstream, "UpstreamOverTCP": upstreamOverTCP,
	})
	return out.String(), err
}
