// Package nodelocaldns deploys a DNS cache on each node of a shoot.
//
// The cache is CoreDNS, in the network of the node, at an address that is local to the node and the same on all of them. Kubelets configure that
// address in pods, which keep it: when caches are enabled or disabled, machines are replaced, and nodes with pods that use the cache keep it
// until then.
//
// Without kube-proxy, the extension for the network implements Services. It may move the cache into the network of pods by a webhook, and lead queries to the
// address of the cluster's DNS server to it. Kubelets configure that address in pods then, at which the cache also answers where it is not moved. That for
// Cilium also moves it where kube-proxy runs: nothing answers at the address of the cache on the node then.
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
	"gardener.cloud/gardener/internal/component/kubeproxy"
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
	// listenFile has the directive with the addresses at which the cache answers, which only the pod knows.
	listenVolume, listenDir = "listen", "/run/node-local-dns"
	listenFile              = listenDir + "/listen"
	priority                = "system-node-critical"

	// upstreamName is the name of the Service at which the cache reaches the cluster's DNS server, if queries to the address of that one lead to the cache.
	upstreamName = "kube-dns-upstream"
	// upstreamHost is the address of it, as kubelets name it in the environment of the pod.
	upstreamHost  = "{$KUBE_DNS_UPSTREAM_SERVICE_HOST}"
	dnsServerPort = 8053
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
	// BehindService says that pods ask at the addresses of the cluster's DNS server, and that the network may lead their queries to the cache.
	BehindService bool
}

// Enabled says whether a Shoot has the cache.
func Enabled(shoot *corev1beta1.Shoot) bool {
	c := shoot.Spec.SystemComponents
	return c != nil && c.NodeLocalDNS != nil && c.NodeLocalDNS.Enabled
}

// NodeLabels are those of nodes whose pods use the cache.
func NodeLabels() map[string]string { return map[string]string{constants.NodeLocalDNS: "true"} }

// Resolvers returns the addresses that kubelets of a Shoot with the cache configure in pods.
func Resolvers(shoot *corev1beta1.Shoot, networks systemcomponent.Networks) []netip.Addr {
	if behindService(shoot) {
		return networks.DNS()
	}
	return []netip.Addr{Address(networks)}
}

// networkCilium is the type of the network whose extension always moves the cache into the network of pods.
const networkCilium = "cilium"

func behindService(shoot *corev1beta1.Shoot) bool {
	n := shoot.Spec.Networking
	return !kubeproxy.Enabled(shoot) || n != nil && ptr.Deref(n.Type, "") == networkCilium
}

// Address returns the address of the cache in a cluster.
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
	v := Values{Address: Address(networks), ClusterDNS: networks.DNS(), ClusterOverTCP: true, UpstreamOverTCP: true, BehindService: behindService(shoot)}
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
	objects := []client.Object{w.ServiceAccount(), config, daemonSet}
	if v.BehindService {
		putBehindService(daemonSet)
		objects = append(objects, upstreamService())
	}
	if err := references.Inject(daemonSet, nil); err != nil {
		return nil, err
	}
	return objects, nil
}

// putBehindService makes a DaemonSet work in both networks. A network finds the ports of the cache by their names. As they are reserved in the network of the
// node, a new pod starts after the old one has ended. The kubelet asks at the address of the pod whether it is healthy.
func putBehindService(daemonSet *appsv1.DaemonSet) {
	daemonSet.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: new(intstr.FromInt32(0)), MaxUnavailable: new(intstr.FromString("10%"))}
	pod := &daemonSet.Spec.Template.Spec
	pod.EnableServiceLinks = new(true)
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: listenVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	setup, cache := &pod.InitContainers[0], &pod.Containers[0]
	setup.Env = []corev1.EnvVar{workload.FieldEnv("POD_IP", "status.podIP"), workload.FieldEnv("POD_IPS", "status.podIPs"), workload.FieldEnv("HOST_IP", "status.hostIP")}
	setup.VolumeMounts = []corev1.VolumeMount{{Name: listenVolume, MountPath: listenDir}}
	cache.VolumeMounts = append(cache.VolumeMounts, corev1.VolumeMount{Name: listenVolume, MountPath: listenDir, ReadOnly: true})
	cache.Ports = []corev1.ContainerPort{
		{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", ContainerPort: 53, Protocol: corev1.ProtocolTCP},
	}
	for _, probe := range []*corev1.Probe{cache.StartupProbe, cache.LivenessProbe, cache.ReadinessProbe} {
		probe.HTTPGet.Host = ""
	}
}

// upstreamService leads to the cluster's DNS server, at an address of its own.
func upstreamService() *corev1.Service {
	port := func(name string, protocol corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: protocol, Port: 53, TargetPort: intstr.FromInt32(dnsServerPort)}
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: upstreamName, Labels: systemcomponent.Labels()},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"k8s-app": "kube-dns"},
			Ports:    []corev1.ServicePort{port("dns", corev1.ProtocolUDP), port("dns-tcp", corev1.ProtocolTCP)},
		},
	}
}

// listen is the directive with the addresses at which the cache answers.
func (v Values) listen() string {
	if v.BehindService {
		return "import " + listenFile
	}
	return "bind " + v.Address.String()
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

// local is an address on the loopback device of a node.
type local struct {
	Address string
	Bits    int
	Family  string
}

func locals(addresses ...netip.Addr) []local {
	list := make([]local, 0, len(addresses))
	for _, address := range addresses {
		family := "ip"
		if address.Is6() {
			family = "ip6"
		}
		list = append(list, local{address.String(), address.BitLen(), family})
	}
	return list
}

func (v Values) render(name string) (string, error) {
	servers := make([]string, 0, len(v.ClusterDNS))
	for _, address := range v.ClusterDNS {
		servers = append(servers, address.String())
	}
	cluster, upstream := strings.Join(servers, " "), "/etc/resolv.conf"
	health := netip.AddrPortFrom(v.Address, healthPort).String()
	// The addresses of the cluster's DNS server stay on nodes that had no kube-proxy before.
	addresses, former := locals(v.Address), locals(v.ClusterDNS...)
	if v.BehindService {
		cluster, health = upstreamHost, ":"+strconv.Itoa(healthPort)
		addresses, former = append(addresses, former...), nil
	}
	upstreamOverTCP := v.UpstreamOverTCP
	if v.ClusterOnly {
		upstream, upstreamOverTCP = cluster, v.ClusterOverTCP
	}
	out := &strings.Builder{}
	err := templates.ExecuteTemplate(out, name, map[string]any{
		"Domain": systemcomponent.Domain, "Listen": v.listen(), "Health": health, "Metrics": ":" + strconv.Itoa(metricsPort),
		"Cluster": cluster, "ClusterOverTCP": v.ClusterOverTCP, "Upstream": upstream, "UpstreamOverTCP": upstreamOverTCP,
		"BehindService": v.BehindService, "ListenFile": listenFile, "Addresses": addresses, "Former": former,
	})
	return out.String(), err
}
