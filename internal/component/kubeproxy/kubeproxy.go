// Package kubeproxy deploys kube-proxy, which implements Services on the nodes of a shoot.
//
// There is one DaemonSet for each version of Kubernetes in each worker pool: while a pool is rolled, its old nodes keep the kube-proxy
// of their version. The settings of connection tracking are not changed: local machines share the kernel of their host.
package kubeproxy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// ManagedResourceName is the name of the ManagedResource with all objects.
	ManagedResourceName = "shoot-core-kube-proxy"
	// Name is the name of the service account. Names of DaemonSets begin with it.
	Name = "kube-proxy"

	// maxPools is of how many pools and versions there may be nodes, by their labels. Users of a shoot create Nodes with any labels, and all DaemonSets are
	// in the memory of the gardenlet.
	maxPools = 1000

	healthPort  = 10256
	metricsPort = 10249
	// kubernetesPort is that of the Service "kubernetes".
	kubernetesPort = 443

	configDir      = "/var/lib/kube-proxy"
	keyConfig      = "config.yaml"
	keyKubeconfig  = "kubeconfig"
	accountToken   = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path
	clusterRole    = "system:node-proxier"
	roleBinding    = "gardener.cloud:target:node-proxier"
	configVolume   = "config"
	modulesVolume  = "modules"
	lockVolume     = "xtables-lock"
	priority       = "system-node-critical"
	nodeNameEnv    = "NODE_NAME"
	containerLabel = "name"
)

// Values are what kube-proxy is deployed with.
type Values struct {
	// Mode is its proxy mode. Empty means iptables.
	Mode corev1beta1.ProxyMode
	// FeatureGates are those of spec.kubernetes.kubeProxy.
	FeatureGates map[string]bool
	// PodNetworks are the ranges of pods, one per IP family. Traffic from elsewhere to Services is masqueraded.
	PodNetworks []netip.Prefix
	// KubernetesService is the address of the Service "kubernetes".
	KubernetesService netip.Addr
	// APIServer is the host name of the kube-apiserver outside of the cluster, such as api.<domain of the shoot>.
	APIServer string
	// CABundle is the CA bundle of the kube-apiserver, as PEM.
	CABundle []byte
	// Pools are the worker pools.
	Pools []Pool
}

// Pool is a worker pool in one version of Kubernetes.
type Pool struct {
	// Name is the name of the pool, and Version is that of its nodes, such as "1.36.3".
	Name, Version string
	// Image is that of kube-proxy in this version.
	Image string
}

// Enabled reports whether a Shoot has kube-proxy. Otherwise, another component implements Services.
func Enabled(shoot *corev1beta1.Shoot) bool {
	c := shoot.Spec.Kubernetes.KubeProxy
	return c == nil || ptr.Deref(c.Enabled, true)
}

// For returns the values for a Shoot, without APIServer and CABundle. The nodes are those that exist: they may have pools or versions that the
// Shoot no longer has. image returns the image of kube-proxy for a version and an architecture, which may be unknown.
func For(shoot *corev1beta1.Shoot, nodes []corev1.Node, image func(version, architecture string) (string, error)) (Values, error) {
	networks, err := systemcomponent.NetworksOf(shoot)
	if err != nil {
		return Values{}, err
	}
	v := Values{PodNetworks: networks.Pods, KubernetesService: networks.KubernetesService()}
	if c := shoot.Spec.Kubernetes.KubeProxy; c != nil {
		v.Mode, v.FeatureGates = ptr.Deref(c.Mode, ""), c.FeatureGates
	}
	architectures := map[string]string{} // by pool
	seen := map[Pool]bool{}
	for i := range nodes {
		labels := nodes[i].Labels
		pool := Pool{Name: labels[constants.WorkerPool], Version: labels[constants.WorkerKubernetesVersion]}
		if pool.Name == "" || pool.Version == "" || seen[pool] {
			continue
		}
		if len(seen) == maxPools {
			return Values{}, errorcode.With(fmt.Errorf("nodes have labels of more than %d pools and versions, each of which needs a kube-proxy", maxPools),
				corev1beta1.ErrorConfigurationProblem)
		}
		seen[pool] = true
		v.Pools, architectures[pool.Name] = append(v.Pools, pool), labels[corev1.LabelArchStable]
	}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		version := operatingsystemconfig.KubernetesVersion(worker, shoot.Spec.Kubernetes.Version)
		v.Pools = append(v.Pools, Pool{Name: worker.Name, Version: version})
		architectures[worker.Name] = ptr.Deref(worker.Machine.Architecture, "")
	}
	slices.SortFunc(v.Pools, func(a, b Pool) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version)) })
	v.Pools = slices.Compact(v.Pools)
	for i := range v.Pools {
		if v.Pools[i].Image, err = image(v.Pools[i].Version, architectures[v.Pools[i].Name]); err != nil {
			return Values{}, fmt.Errorf("kube-proxy for version %s of pool %q: %w", v.Pools[i].Version, v.Pools[i].Name, err)
		}
	}
	return v, nil
}

// Objects renders kube-proxy.
func Objects(v Values) ([]client.Object, error) {
	config, err := v.config()
	if err != nil {
		return nil, err
	}
	account := workload.Workload{Name: Name, Namespace: metav1.NamespaceSystem, Labels: systemcomponent.Labels()}
	objects := []client.Object{account.ServiceAccount(), account.ClusterRoleBinding(roleBinding, clusterRole), config}
	for _, pool := range v.Pools {
		daemonSet := pool.daemonSet(config.Name, v.startupProbe())
		if err := references.Inject(daemonSet, nil); err != nil {
			return nil, err
		}
		objects = append(objects, daemonSet)
	}
	return objects, nil
}

// startupProbe succeeds when the Service "kubernetes" can be reached from the node. /livez does not say that: it is healthy before kube-proxy has
// written its rules for the first time, and pods that start by then find no Service. As rules are written together, those of one Service stand for
// all. The probe is not that for readiness, as kube-proxy would not be ready whenever the kube-apiserver is not. It fails as long as apiserver-proxy
// is not ready on a new node, and restarts kube-proxy after ten minutes or more.
func (v Values) startupProbe() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{
			Host: v.KubernetesService.String(), Port: intstr.FromInt32(kubernetesPort),
		}},
		PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 600,
	}
}

func (p Pool) daemonSet(config string, startupProbe *corev1.Probe) client.Object {
	name := fmt.Sprintf("%s-%s-v%s", Name, p.Name, p.Version)
	probe := workload.HTTPProbe("/livez", healthPort, corev1.URISchemeHTTP)
	w := workload.Workload{
		Name: name, Namespace: metav1.NamespaceSystem,
		Labels: map[string]string{constants.App: "kubernetes", constants.Role: "proxy", containerLabel: name},
		PodLabels: workload.Merge(systemcomponent.PodLabels(), map[string]string{
			constants.NodeCriticalComponent: "true", constants.WorkerPool: p.Name, constants.WorkerKubernetesVersion: p.Version,
		}),
		PriorityClass: priority, HostNetwork: true,
		Container: corev1.Container{
			Image:   p.Image,
			Command: []string{"/usr/local/bin/kube-proxy"},
			Args:    []string{"--config=" + configDir + "/" + keyConfig, "--hostname-override=$(" + nodeNameEnv + ")", "--v=2"},
			Env: []corev1.EnvVar{{Name: nodeNameEnv, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"},
			}}},
			Ports: []corev1.ContainerPort{
				{Name: "metrics", ContainerPort: metricsPort, HostPort: metricsPort, Protocol: corev1.ProtocolTCP},
			},
			Resources:     workload.Requests("20m", "64Mi"),
			StartupProbe:  startupProbe,
			LivenessProbe: probe, ReadinessProbe: probe.DeepCopy(),
			// It writes iptables or nftables rules of the node.
			SecurityContext: &corev1.SecurityContext{Privileged: new(true), ReadOnlyRootFilesystem: new(true)},
			VolumeMounts: []corev1.VolumeMount{
				{Name: configVolume, MountPath: configDir, ReadOnly: true},
				{Name: modulesVolume, MountPath: "/lib/modules", ReadOnly: true},
				{Name: lockVolume, MountPath: "/run/xtables.lock"},
			},
		},
		Volumes: []corev1.Volume{
			workload.ConfigMapVolume(configVolume, config),
			workload.HostPath(modulesVolume, "/lib/modules", corev1.HostPathUnset),
			workload.HostPath(lockVolume, "/run/xtables.lock", corev1.HostPathFileOrCreate),
		},
	}
	daemonSet := w.DaemonSet()
	daemonSet.Labels = workload.Merge(systemcomponent.Labels(), w.Labels, map[string]string{constants.NodeCriticalComponent: "true"})
	pod := &daemonSet.Spec.Template.Spec
	pod.ServiceAccountName = Name
	pod.Containers[0].Name = Name
	pod.NodeSelector = map[string]string{constants.WorkerPool: p.Name, constants.WorkerKubernetesVersion: p.Version}
	return daemonSet
}

// config renders the configuration and the kubeconfig. The kubeconfig does not use the Service of the kube-apiserver, as Services need
// kube-proxy; its credentials are the token of the service account.
func (v Values) config() (*corev1.ConfigMap, error) {
	mode := v.Mode
	if mode == "" {
		mode = corev1beta1.ProxyModeIPTables
	}
	all := netip.IPv4Unspecified()
	pods := make([]string, 0, len(v.PodNetworks))
	for i, prefix := range v.PodNetworks {
		pods = append(pods, prefix.String())
		if i == 0 && prefix.Addr().Is6() {
			all = netip.IPv6Unspecified()
		}
	}
	listen := func(port uint16) string { return netip.AddrPortFrom(all, port).String() }
	config := map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"clientConnection":   map[string]any{"kubeconfig": configDir + "/" + keyKubeconfig},
		"clusterCIDR":        strings.Join(pods, ","),
		"healthzBindAddress": listen(healthPort), "metricsBindAddress": listen(metricsPort),
		"mode": strings.ToLower(string(mode)),
		// Zero means that the settings of the machine are not changed.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s"},
	}
	if len(v.FeatureGates) > 0 {
		config["featureGates"] = v.FeatureGates
	}
	kubeconfig := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": Name,
		"clusters": []any{map[string]any{"name": Name, "cluster": map[string]any{
			"server": "https://" + v.APIServer, "certificate-authority-data": v.CABundle,
		}}},
		"users":    []any{map[string]any{"name": Name, "user": map[string]any{"tokenFile": accountToken}}},
		"contexts": []any{map[string]any{"name": Name, "context": map[string]any{"cluster": Name, "user": Name}}},
	}
	data := map[string]string{}
	for key, content := range map[string]any{keyConfig: config, keyKubeconfig: kubeconfig} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return nil, err
		}
		data[key] = string(text)
	}
	configMap := immutable.ConfigMap(metav1.NamespaceSystem, Name+"-config", data)
	configMap.Labels = workload.Merge(systemcomponent.Labels(), configMap.Labels)
	return configMap, nil
}
