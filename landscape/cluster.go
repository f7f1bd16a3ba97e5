package landscape

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape/addon"
	"gardener.cloud/gardener/landscape/containers"
	"gardener.cloud/gardener/landscape/host"
)

// fieldOwner is the landscape's name as a field manager.
const fieldOwner = "landscape"

const (
	// auditPolicy is the file on a machine that says what the kube-apiserver logs of its requests.
	auditPolicy = "/etc/machine/audit-policy.yaml"
	// auditDir is the directory on a machine of the log. The machine's directory on this computer has it too.
	auditDir = "/var/log/kubernetes/audit"
)

// AuditDir is the directory of the audit log of a cluster, and of its rotated files.
func (l *Landscape) AuditDir(cluster Cluster) string {
	return filepath.Join(l.machineDir(cluster.Machines[0].Name), "audit")
}

// ignoredChecks are kubeadm's checks that mean nothing in a container: they read kernel modules and the build configuration of the kernel.
const ignoredChecks = "[SystemVerification, FileContent--proc-sys-net-bridge-bridge-nf-call-iptables, Port-10250]"

// machineNetworkIPv6 has the IPv6 addresses of pods of all clusters, which the machines of shoots are.
var machineNetworkIPv6 = netip.MustParsePrefix("fd00:10::/32")

// The networks of a cluster are disjoint between the clusters of a landscape, so that one cluster's addresses never
// mean something else in another.
func (c Cluster) pods() netip.Prefix     { return clusterNetwork(1 + 2*c.Number) }
func (c Cluster) services() netip.Prefix { return clusterNetwork(2 + 2*c.Number) }

// podRanges are the ranges of pods, one per IP family. Services have IPv4 addresses only.
func (c Cluster) podRanges() []netip.Prefix {
	ranges := []netip.Prefix{c.pods()}
	if c.DualStack {
		const length = 56 // room for 256 nodes, each with a /64
		addr := machineNetworkIPv6.Addr().As16()
		addr[5] = byte(c.Number)
		ranges = append(ranges, netip.PrefixFrom(netip.AddrFrom16(addr), length))
	}
	return ranges
}

// dns is the address of the cluster's DNS service, the tenth of the service network as kubeadm has it.
func (c Cluster) dns() netip.Addr {
	addr := c.services().Addr().As4()
	addr[3] = 10
	return netip.AddrFrom4(addr)
}

// localDNS is the address of the Service that serves the names of shoots and seeds, in the part of the service network from which
// kube-apiserver assigns addresses only when a Service requests them.
func (c Cluster) localDNS() netip.Addr {
	addr := c.services().Addr().As4()
	addr[3] = 53
	return netip.AddrFrom4(addr)
}

// localDNSServers are the servers of the names of shoots and seeds that a cluster asks: its own first, then those of the other seeds, as each
// knows only names of its own seed. The runtime cluster has them also without a garden; clusters that are no seeds have none.
func (l *Landscape) localDNSServers(cluster Cluster) []netip.AddrPort {
	if cluster.seed() == "" {
		return nil
	}
	const port = 53
	servers := []netip.AddrPort{netip.AddrPortFrom(cluster.localDNS(), port)}
	for _, other := range seedClusters(l.state.Clusters) {
		if other.Name != cluster.Name {
			servers = append(servers, netip.AddrPortFrom(l.network().Machine(other.Machines[0].Number), localDNSNodePort))
		}
	}
	return servers
}

// apiServer is the address of a cluster's kube-apiserver that works without Services.
func (l *Landscape) apiServer(cluster Cluster) netip.AddrPort {
	const port = 6443 // kubeadm's
	return netip.AddrPortFrom(l.network().Machine(cluster.Machines[0].Number), port)
}

// clusterNetwork is the nth /16 of 10.0.0.0/8. The runtime cluster's are 10.1.0.0/16 and 10.2.0.0/16; those of further
// clusters come from the other end, because shoots usually have the ones in between.
func clusterNetwork(n int) netip.Prefix {
	if n > 2 {
		n = 250 - n
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n), 0, 0}), 16) //nolint:gosec // n is small
}

// ensureNode runs kubeadm on a machine, unless it has succeeded before, and returns when it has succeeded.
func (l *Landscape) ensureNode(ctx context.Context, c *containers.Client, cluster Cluster, machine Machine, etcdTag string, wait time.Duration, detail func(string)) error {
	if _, err := c.Run(ctx, machine.Name, nil, "test", "-e", "/var/lib/landscape/node-done"); err == nil {
		return nil
	}
	values := map[string]any{"Timeout": wait}
	if verb(cluster, machine) == "init" {
		// All data is encrypted from the start.
		state, err := l.encryptionState(cluster)
		if err != nil {
			return err
		}
		if err := l.saveEncryptionState(cluster, state); err != nil {
			return err
		}
		if values["Encryption"], err = l.writeEncryptionConfig(cluster, state.Keys); err != nil {
			return err
		}
	} else {
		token, err := c.Run(ctx, cluster.Machines[0].Name, nil, "kubeadm", "token", "create", "--ttl=1h", "--description=landscape: "+machine.Name)
		if err != nil {
			return fmt.Errorf("create bootstrap token: %w", err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigFile(cluster.Name))
		if err != nil {
			return err
		}
		if values["CAHash"], err = caHash(config.CAData); err != nil {
			return err
		}
		values["Token"] = strings.TrimSpace(token)
	}
	if err := l.writeKubeadmConfig(cluster, machine, etcdTag, values); err != nil {
		return err
	}
	for component, cpu := range map[string]string{"kube-apiserver": "50m", "kube-controller-manager": "20m", "kube-scheduler": "10m", "etcd": "30m"} {
		patch := fmt.Sprintf("spec:\n  containers:\n  - name: %s\n    resources:\n      requests: {cpu: %s, memory: 0}\n", component, cpu)
		if err := host.WriteFile(filepath.Join(l.userDataDir(machine.Name), "patches", component+"+strategic.yaml"), []byte(patch), 0o644); err != nil {
			return err
		}
	}
	// This waits for a unit that an earlier run has started, and starts one that failed again.
	stop := c.Follow(ctx, machine.Name, lineWriter(detail), "journalctl", "--unit=landscape-kubeadm", "--output=cat", "--lines=0", "--follow")
	defer stop()
	if _, err := c.Run(ctx, machine.Name, nil, "systemctl", "start", "landscape-kubeadm.service"); err != nil {
		journal, _ := c.Run(ctx, machine.Name, nil, "journalctl", "--unit=landscape-kubeadm", "--output=cat", "--lines=15")
		return fmt.Errorf("kubeadm %s failed on machine %q; see its log with: landscape logs %s\n%s", verb(cluster, machine), machine.Name, machine.Name, journal)
	}
	return nil
}

// writeKubeadmConfig writes what kubeadm is configured with on a machine. The values are those besides what all machines have.
func (l *Landscape) writeKubeadmConfig(cluster Cluster, machine Machine, etcdTag string, values map[string]any) error {
	maps.Copy(values, map[string]any{
		"Name": machine.Name, "Zone": machine.zone(), "Address": l.network().Machine(machine.Number), "IgnoredChecks": ignoredChecks,
		"Cluster": cluster.Name, "Version": cluster.Version, "APIServer": l.apiServer(cluster),
		"Pods": joined(cluster.podRanges()), "Services": cluster.services(), "EtcdTag": etcdTag, "EncryptionDir": encryptionDir,
	})
	if verb(cluster, machine) == "init" {
		policy, err := render("audit-policy.yaml.tmpl", nil)
		if err != nil {
			return err
		}
		if err := host.WriteFile(filepath.Join(l.userDataDir(machine.Name), filepath.Base(auditPolicy)), policy, 0o644); err != nil {
			return err
		}
		values["AuditPolicy"], values["AuditDir"] = auditPolicy, auditDir
	}
	config, err := render("kubeadm-"+verb(cluster, machine)+".yaml.tmpl", values)
	if err != nil {
		return err
	}
	return host.WriteFile(filepath.Join(l.userDataDir(machine.Name), "kubeadm.yaml"), config, 0o600)
}

func joined(networks []netip.Prefix) string {
	texts := make([]string, 0, len(networks))
	for _, network := range networks {
		texts = append(texts, network.String())
	}
	return strings.Join(texts, ",")
}

// lineWriter is called with each line that starts like a step of kubeadm.
type lineWriter func(string)

func (w lineWriter) Write(data []byte) (int, error) {
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") {
			w(line)
		}
	}
	return len(data), nil
}

// caHash is the hash of a CA's public key in the form that kubeadm's discovery takes.
func caHash(bundle []byte) (string, error) {
	block, _ := pem.Decode(bundle)
	if block == nil {
		return "", errors.New("the kubeconfig holds no CA certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// writeKubeconfig writes the administrator's kubeconfig of a cluster, as kubeadm made it.
func (l *Landscape) writeKubeconfig(ctx context.Context, c *containers.Client, cluster Cluster) error {
	data, err := c.Run(ctx, cluster.Machines[0].Name, nil, "cat", "/etc/kubernetes/admin.conf")
	if err != nil {
		return err
	}
	config, err := clientcmd.Load([]byte(data))
	if err != nil {
		return fmt.Errorf("read kubeadm's kubeconfig: %w", err)
	}
	out, err := clientcmd.Write(*l.named(config, cluster.Name))
	if err != nil {
		return err
	}
	return host.WriteFile(l.KubeconfigFile(cluster.Name), out, 0o600)
}

// named returns the current context of a kubeconfig under the names of the landscape and the cluster: what makes kubeconfigs names those of every
// cluster alike, and those that are merged must differ.
func (l *Landscape) named(config *clientcmdapi.Config, cluster string) *clientcmdapi.Config {
	name := l.Name + "-" + cluster
	current := config.Contexts[config.CurrentContext]
	return &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: config.Clusters[current.Cluster]},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: config.AuthInfos[current.AuthInfo]},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: current.Namespace}},
		CurrentContext: name,
	}
}

// Client returns a client of a cluster, with the administrator's rights.
func (l *Landscape) Client(cluster string) (client.WithWatch, error) {
	config, err := l.restConfig(cluster)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiregistrationv1.AddToScheme(scheme),
		corev1beta1.AddToScheme(scheme), gardencorev1.AddToScheme(scheme), authenticationv1alpha1.AddToScheme(scheme),
		machinev1alpha1.AddToScheme(scheme), operatorv1alpha1.AddToScheme(scheme), seedmanagementv1alpha1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme), hostsv1alpha1.AddToScheme(scheme), druidv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

func (l *Landscape) restConfig(cluster string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigFile(cluster))
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1 // The server has priority and fairness.
	config.UserAgent = "landscape"
	config.Timeout = 0 // Watches have deadlines of their own.
	return config, nil
}

// awaitAPIServer returns when the cluster's kube-apiserver is ready. There is nothing to watch while a server is down, so this
// polls it.
func (l *Landscape) awaitAPIServer(ctx context.Context, cluster Cluster) error {
	const interval = 250 * time.Millisecond
	config, err := l.restConfig(cluster.Name)
	if err != nil {
		return err
	}
	config.Timeout = 5 * time.Second // A request that hangs is repeated.
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	var last error
	if err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		_, last = c.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return last == nil, nil
	}); err != nil {
		return fmt.Errorf("the kube-apiserver is not ready: %w (%w)", last, context.Cause(ctx))
	}
	return nil
}

// installAddons applies the addons of a cluster.
func (l *Landscape) installAddons(ctx context.Context, cluster Cluster, images map[string]string) error {
	c, err := l.Client(cluster.Name)
	if err != nil {
		return err
	}
	values := addon.Values{
		Images: images, Pods: cluster.podRanges(), DNS: cluster.dns(), Pool: l.network().Pool(cluster.Number),
		APIServer: l.apiServer(cluster), DNSReplicas: cluster.replicas(),
	}
	values.LocalDNS = l.localDNSServers(cluster)
	if l.state.VirtualGarden && cluster.Name != RuntimeCluster && cluster.seed() != "" {
		values.GardenDomain, values.GardenDNS = l.gardenDomain(), netip.AddrPortFrom(l.network().Machine(l.state.Clusters[0].Machines[0].Number), localDNSNodePort)
	}
	objects, err := addon.Objects(values)
	if err != nil {
		return err
	}
	return kube.Apply(ctx, c, fieldOwner, objects...)
}

// awaitCluster returns when every node of the cluster is ready, and every pod in kube-system.
func (l *Landscape) awaitCluster(ctx context.Context, cluster Cluster, detail func(string)) error {
	c, err := l.Client(cluster.Name)
	if err != nil {
		return err
	}
	report := func(reason error) { detail(reason.Error()) }
	want := machineNames(cluster.Machines)
	if err := kube.Await(ctx, c, &corev1.NodeList{}, func(nodes []*corev1.Node) error {
		for _, name := range want {
			index := slices.IndexFunc(nodes, func(node *corev1.Node) bool { return node.Name == name })
			if index < 0 {
				return fmt.Errorf("node %q has not registered", name)
			}
			if err := kube.NodeReady(nodes[index]); err != nil {
				return err
			}
		}
		return nil
	}, report); err != nil {
		return err
	}
	return kube.Await(ctx, c, &corev1.PodList{}, podsReady, report, client.InNamespace(metav1.NamespaceSystem))
}

// expected reports whether a pod is expected to become ready. A pod that is being deleted is not, nor a failed one that its controller
// replaces: a node that evicts a pod keeps it as Failed.
func expected(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (pod.Status.Phase != corev1.PodFailed || metav1.GetControllerOf(pod) == nil)
}

func podsReady(pods []*corev1.Pod) error {
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !expected(pod) })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	ready := 0
	for _, pod := range pods {
		if kube.PodReady(pod) == nil {
			ready++
		}
	}
	for _, pod := range pods {
		if err := kube.PodReady(pod); err != nil {
			return fmt.Errorf("%d of %d system pods are ready; %w", ready, len(pods), err)
		}
	}
	if len(pods) == 0 {
		return errors.New("there are no system pods yet")
	}
	return nil
}

// removeNode drains a node and deletes it. Pods that cannot be evicted in time are deleted with the node.
func (l *Landscape) removeNode(ctx context.Context, c *containers.Client, cluster Cluster, name string) error {
	kubectl := func(args ...string) error {
		_, err := c.Run(ctx, cluster.Machines[0].Name, nil, append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, args...)...)
		return err
	}
	var exit *containers.ExitError
	if err := kubectl("drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s"); err != nil && !errors.As(err, &exit) {
		return err
	}
	return kubectl("delete", "node", name, "--ignore-not-found")
}
