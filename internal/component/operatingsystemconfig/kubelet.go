package operatingsystemconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// Paths of the kubelet.
const (
	// KubeletDir is the data directory of the kubelet.
	KubeletDir = "/var/lib/kubelet"
	// KubeletBootstrapKubeconfig is the kubeconfig with which a new kubelet requests its certificate. The node agent writes it, and
	// removes it when KubeletKubeconfig exists.
	KubeletBootstrapKubeconfig = KubeletDir + "/kubeconfig-bootstrap"
	// KubeletKubeconfig is the kubeconfig that the kubelet writes when it has a certificate.
	KubeletKubeconfig = KubeletDir + "/kubeconfig-real"
	// KubeletCAFile has the CA bundle for clients of the kubelet.
	KubeletCAFile = KubeletDir + "/ca.crt"
	// cpuManagerState is the checkpoint of the kubelet's CPU manager.
	cpuManagerState = KubeletDir + "/cpu_manager_state"
	// KubeletHealthPort is the port of the kubelet's /healthz, on localhost only.
	KubeletHealthPort = 10248
	// KubeletImageDir is the directory of the binaries in the image of the kubelet.
	KubeletImageDir = "/usr/local/bin"
	// ContainerdSocket is the socket of containerd.
	ContainerdSocket = "/run/containerd/containerd.sock"
)

// kubeletConfiguration renders the configuration file of the kubelet.
func kubeletConfiguration(v *Values, c *corev1beta1.KubeletConfig, taints []corev1.Taint) ([]byte, error) {
	if c == nil {
		c = &corev1beta1.KubeletConfig{}
	}
	config := kubeletconfigv1beta1.KubeletConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: kubeletconfigv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		Authentication: kubeletconfigv1beta1.KubeletAuthentication{
			Anonymous: kubeletconfigv1beta1.KubeletAnonymousAuthentication{Enabled: new(false)},
			Webhook:   kubeletconfigv1beta1.KubeletWebhookAuthentication{Enabled: new(true), CacheTTL: duration(2 * time.Minute)},
			X509:      kubeletconfigv1beta1.KubeletX509Authentication{ClientCAFile: KubeletCAFile},
		},
		Authorization: kubeletconfigv1beta1.KubeletAuthorization{
			Mode: kubeletconfigv1beta1.KubeletAuthorizationModeWebhook,
			Webhook: kubeletconfigv1beta1.KubeletWebhookAuthorization{
				CacheAuthorizedTTL: duration(5 * time.Minute), CacheUnauthorizedTTL: duration(30 * time.Second),
			},
		},
		// The kubelet requests its serving certificate, too; gardener-resource-manager approves it.
		RotateCertificates: true, ServerTLSBootstrap: true,
		TLSMinVersion:      "VersionTLS12",
		ReadOnlyPort:       0,
		HealthzBindAddress: "127.0.0.1", HealthzPort: new(int32(KubeletHealthPort)),
		ClusterDomain: v.ClusterDomain,
		// The default. Extensions for operating systems whose resolver is on the node itself look for the line, and replace the file in it.
		ResolverConfig:           new("/etc/resolv.conf"),
		ContainerRuntimeEndpoint: "unix://" + ContainerdSocket,
		// A kubelet uses the cgroup driver of containerd, and this one only if containerd does not report it; see the node agent.
		CgroupDriver: string(extensionsv1alpha1.CgroupDriverSystemd),
		// Without it, a new kubelet refuses to start on a machine with cgroup v1. It has no effect with v2.
		FailCgroupV1:                 new(false),
		VolumePluginDir:              "/var/lib/kubelet/volumeplugins",
		EnableControllerAttachDetach: new(true),
		NodeStatusUpdateFrequency:    duration(10 * time.Second), NodeLeaseDurationSeconds: 40,
		RegisterWithTaints: taints,

		FeatureGates:                     featureGates(c.FeatureGates),
		CPUCFSQuota:                      new(ptr.Deref(c.CPUCFSQuota, true)),
		CPUManagerPolicy:                 cpuManagerPolicy(c),
		MaxPods:                          ptr.Deref(c.MaxPods, 110),
		PodPidsLimit:                     c.PodPidsLimit,
		FailSwapOn:                       new(ptr.Deref(c.FailSwapOn, true)),
		KubeReserved:                     reserved(c.KubeReserved),
		ImageGCHighThresholdPercent:      new(ptr.Deref(c.ImageGCHighThresholdPercent, corev1beta1.DefaultImageGCHighThresholdPercent)),
		ImageGCLowThresholdPercent:       new(ptr.Deref(c.ImageGCLowThresholdPercent, corev1beta1.DefaultImageGCLowThresholdPercent)),
		ImageMinimumGCAge:                ptr.Deref(c.ImageMinimumGCAge, duration(corev1beta1.DefaultImageMinimumGCAge)),
		ImageMaximumGCAge:                ptr.Deref(c.ImageMaximumGCAge, metav1.Duration{}),
		SerializeImagePulls:              new(ptr.Deref(c.SerializeImagePulls, ptr.Deref(c.MaxParallelImagePulls, 1) <= 1)),
		MaxParallelImagePulls:            c.MaxParallelImagePulls,
		RegistryPullQPS:                  c.RegistryPullQPS,
		RegistryBurst:                    ptr.Deref(c.RegistryBurst, 0),
		SeccompDefault:                   c.SeccompDefault,
		ContainerLogMaxSize:              "100Mi",
		ContainerLogMaxFiles:             c.ContainerLogMaxFiles,
		ProtectKernelDefaults:            ptr.Deref(c.ProtectKernelDefaults, true),
		StreamingConnectionIdleTimeout:   ptr.Deref(c.StreamingConnectionIdleTimeout, duration(5*time.Minute)),
		SingleProcessOOMKill:             c.SingleProcessOOMKill,
		EvictionHard:                     startable(eviction(c.EvictionHard, defaultEvictionHard), defaultEvictionHard),
		EvictionSoft:                     startable(eviction(c.EvictionSoft, defaultEvictionSoft), defaultEvictionSoft),
		EvictionSoftGracePeriod:          gracePeriods(c.EvictionSoftGracePeriod),
		EvictionMinimumReclaim:           reclaim(c.EvictionMinimumReclaim),
		EvictionMaxPodGracePeriod:        ptr.Deref(c.EvictionMaxPodGracePeriod, 90),
		EvictionPressureTransitionPeriod: ptr.Deref(c.EvictionPressureTransitionPeriod, duration(4*time.Minute)),
	}
	for _, ip := range v.ClusterDNS {
		config.ClusterDNS = append(config.ClusterDNS, ip.String())
	}
	if size := c.ContainerLogMaxSize; size != nil {
		config.ContainerLogMaxSize = size.String()
	}
	if swap := c.MemorySwap; swap != nil && swap.SwapBehavior != nil {
		config.MemorySwap.SwapBehavior = string(*swap.SwapBehavior)
	}
	if policy := c.ImagePullCredentialsVerificationPolicy; policy != nil {
		config.ImagePullCredentialsVerificationPolicy = kubeletconfigv1beta1.ImagePullCredentialsVerificationPolicy(*policy)
		config.PreloadedImagesVerificationAllowlist = c.PreloadedImagesVerificationAllowlist
	}
	return toYAML(&config)
}

// featureGates removes settings that disable what serverTLSBootstrap needs, as a kubelet would refuse to start.
func featureGates(gates map[string]bool) map[string]bool {
	const certificates, group = "RotateKubeletServerCertificate", "AllBeta" // the group contains the gate
	gates = maps.Clone(gates)
	_, set := gates[certificates]
	if beta, ok := gates[group]; set || ok && !beta {
		gates[certificates] = true
	}
	return gates
}

// toYAML writes an object without the zero durations and empty sections that its type cannot leave out.
func toYAML(object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	delete(fields, "logging")                 // nothing is set, but the type encodes zeros
	const periods = "evictionSoftGracePeriod" // its zero durations are kept
	kept := fields[periods]
	delete(fields, periods)
	prune(fields)
	fields[periods] = kept
	return yaml.Marshal(fields)
}

func prune(fields map[string]any) {
	for key, value := range fields {
		if section, ok := value.(map[string]any); ok {
			prune(section)
			if len(section) == 0 {
				delete(fields, key)
			}
		}
		if value == "0s" || value == nil {
			delete(fields, key)
		}
	}
}

// Eviction signals.
const (
	memory      = "memory.available"
	imageFS     = "imagefs.available"
	imageInodes = "imagefs.inodesFree"
	nodeFS      = "nodefs.available"
	nodeInodes  = "nodefs.inodesFree"
)

// Defaults of the kubelet.
const defaultCPUManagerPolicy = "none"

func cpuManagerPolicy(c *corev1beta1.KubeletConfig) string {
	if c == nil {
		return defaultCPUManagerPolicy
	}
	return ptr.Deref(c.CPUManagerPolicy, defaultCPUManagerPolicy)
}

var (
	defaultEvictionHard = map[string]string{memory: "100Mi", imageFS: "5%", imageInodes: "5%", nodeFS: "5%", nodeInodes: "5%"}
	defaultEvictionSoft = map[string]string{memory: "200Mi", imageFS: "10%", imageInodes: "10%", nodeFS: "10%", nodeInodes: "10%"}
)

func eviction(e *corev1beta1.KubeletConfigEviction, defaults map[string]string) map[string]string {
	if e == nil {
		return defaults
	}
	return signals(func(s string) string { return s }, defaults,
		e.MemoryAvailable, e.ImageFSAvailable, e.ImageFSInodesFree, e.NodeFSAvailable, e.NodeFSInodesFree)
}

// startable replaces thresholds that a kubelet refuses to start with by defaults. The API accepts any text for nodefs.inodesFree, as the
// original does, and there may be Shoots with other such values from before they were validated.
func startable(limits, defaults map[string]string) map[string]string {
	result := maps.Clone(limits)
	for signal, limit := range limits {
		if !isLimit(limit) {
			result[signal] = defaults[signal]
		}
	}
	return result
}

func isLimit(text string) bool {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(share, 64)
		return err == nil && percent >= 0 && percent <= 100
	}
	quantity, err := resource.ParseQuantity(text)
	return err == nil && quantity.Sign() > 0
}

func gracePeriods(e *corev1beta1.KubeletConfigEvictionSoftGracePeriod) map[string]string {
	defaults := all("1m30s")
	if e == nil {
		return defaults
	}
	return signals(func(d metav1.Duration) string { return d.Duration.String() }, defaults,
		e.MemoryAvailable, e.ImageFSAvailable, e.ImageFSInodesFree, e.NodeFSAvailable, e.NodeFSInodesFree)
}

func reclaim(e *corev1beta1.KubeletConfigEvictionMinimumReclaim) map[string]string {
	defaults := all("0Mi")
	if e == nil {
		return defaults
	}
	return signals(func(q resource.Quantity) string { return q.String() }, defaults,
		e.MemoryAvailable, e.ImageFSAvailable, e.ImageFSInodesFree, e.NodeFSAvailable, e.NodeFSInodesFree)
}

func all(value string) map[string]string {
	return map[string]string{memory: value, imageFS: value, imageInodes: value, nodeFS: value, nodeInodes: value}
}

// signals returns thresholds by signal, for values in the order of the API's fields, with defaults for missing ones.
func signals[T any](text func(T) string, defaults map[string]string, values ...*T) map[string]string {
	result := map[string]string{}
	maps.Copy(result, defaults)
	for i, signal := range []string{memory, imageFS, imageInodes, nodeFS, nodeInodes} {
		if values[i] != nil {
			result[signal] = text(*values[i])
		}
	}
	return result
}

// reserved are the resources that are reserved for the kubelet and the operating system.
func reserved(r *corev1beta1.KubeletConfigReserved) map[string]string {
	result := map[string]string{"cpu": "80m", "memory": "1Gi", "pid": "20k"}
	if r == nil {
		return result
	}
	for name, quantity := range map[string]*resource.Quantity{
		"cpu": r.CPU, "memory": r.Memory, "ephemeral-storage": r.EphemeralStorage, "pid": r.PID,
	} {
		if quantity != nil {
			result[name] = quantity.String()
		}
	}
	return result
}

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// kubeletExtraArgs is where machine images and extensions set the environment variable KUBELET_EXTRA_ARGS, with more flags of the kubelet such as the
// address or the name of the node. A machine image may set it in /etc/environment, too.
const kubeletExtraArgs = "/var/lib/kubelet/extra_args"

// flagSeparator is between the flags of the kubelet in its unit. Webhooks of extensions split the command by it, and replace, add and remove flags.
const flagSeparator = " \\\n    "

// kubeletUnit starts the kubelet when the node agent has written its files. A kubelet does not start with the checkpoint of another CPU manager
// policy, so that is removed before; the dots in the pattern stand for quotes, which systemd and the shell would interpret.
func kubeletUnit(v *Values, pool *Pool) extensionsv1alpha1.Unit {
	labels := maps.Clone(pool.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[constants.WorkerPool] = pool.Worker.Name
	labels[constants.WorkerPoolDeprecated] = pool.Worker.Name
	labels[constants.WorkerCRIName] = string(extensionsv1alpha1.CRINameContainerD)
	labels[constants.WorkerKubernetesVersion] = KubernetesVersion(&pool.Worker, v.KubernetesVersion)
	labels[constants.WorkerPoolGardenerNodeAgentSecretName] = SecretName(pool.Worker.Name, pool.Hash)
	command := []string{
		extensionsv1alpha1.OperatingSystemConfigFilePathBinaries + "/kubelet",
		"--bootstrap-kubeconfig=" + KubeletBootstrapKubeconfig,
		"--config=" + extensionsv1alpha1.OperatingSystemConfigFilePathKubeletConfig,
		"--kubeconfig=" + KubeletKubeconfig,
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if settable(key) {
			command = append(command, "--node-labels="+key+"="+labels[key])
		}
	}
	command = append(command, "--container-runtime-endpoint=unix://"+ContainerdSocket, "--runtime-cgroups=/system.slice/containerd.service", "--v=2")
	if len(v.ClusterDNS) > 0 && v.ClusterDNS[0].To4() == nil {
		command = append(command, `--node-ip="::"`) // the IPv6 address is the first one of the node
	}
	command = append(command, "$KUBELET_EXTRA_ARGS")
	return extensionsv1alpha1.Unit{
		Name:    extensionsv1alpha1.OperatingSystemConfigUnitNameKubeletService,
		Command: new(extensionsv1alpha1.CommandStart), Enable: new(true),
		Content: new(fmt.Sprintf(`[Unit]
Description=kubelet
After=containerd.service
Wants=containerd.service
StartLimitIntervalSec=0

[Service]
EnvironmentFile=-/etc/environment
EnvironmentFile=-%[4]s
ExecStartPre=/bin/sh -c 'grep -qs policyName.:.%[2]s. %[3]s || rm -f %[3]s'
ExecStart=%[1]s
Restart=always
RestartSec=2
OOMScoreAdjust=-999
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target
`, strings.Join(command, flagSeparator), cpuManagerPolicy(pool.Worker.KubeletConfig(v.Kubelet)), cpuManagerState, kubeletExtraArgs)),
		FilePaths: []string{
			extensionsv1alpha1.OperatingSystemConfigFilePathKubeletConfig, KubeletCAFile,
			extensionsv1alpha1.OperatingSystemConfigFilePathBinaries + "/kubelet",
			nodeagentconfigv1alpha1.ClusterCAFilePath, // the kubelet's kubeconfig refers to it
		},
	}
}

// settable says whether a kubelet may set a label of its own node. In the domains kubernetes.io and k8s.io it may only set a few.
func settable(label string) bool {
	domain, _, prefixed := strings.Cut(label, "/")
	if !prefixed {
		return true
	}
	for _, allowed := range []string{"node.kubernetes.io", "kubelet.kubernetes.io"} {
		if domain == allowed || strings.HasSuffix(domain, "."+allowed) {
			return true
		}
	}
	for _, reserved := range []string{"kubernetes.io", "k8s.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return false
		}
	}
	return true
}
