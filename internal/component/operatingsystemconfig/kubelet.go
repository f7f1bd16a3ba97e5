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
	// KubeletDir is where the kubelet keeps its data.
	KubeletDir = "/var/lib/kubelet"
	// KubeletBootstrapKubeconfig is the kubeconfig that a new kubelet asks for its certificate with. The node agent writes it, and
	// removes it when there is KubeletKubeconfig.
	KubeletBootstrapKubeconfig = KubeletDir + "/kubeconfig-bootstrap"
	// KubeletKubeconfig is the kubeconfig that the kubelet writes once it has a certificate.
	KubeletKubeconfig = KubeletDir + "/kubeconfig-real"
	// KubeletCAFile has the certificate authorities of clients that may talk to the kubelet.
	KubeletCAFile = KubeletDir + "/ca.crt"
	// cpuManagerState is what the CPU manager of the kubelet remembers.
	cpuManagerState = KubeletDir + "/cpu_manager_state"
	// KubeletHealthPort is where the kubelet answers /healthz, on the machine only.
	KubeletHealthPort = 10248
	// KubeletImageDir is where the binaries are in the image of the kubelet.
	KubeletImageDir = "/usr/local/bin"
	// ContainerdSocket is where containerd listens.
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
		// The certificate of its server comes by a request too, which gardener-resource-manager approves.
		RotateCertificates: true, ServerTLSBootstrap: true,
		TLSMinVersion:      "VersionTLS12",
		ReadOnlyPort:       0,
		HealthzBindAddress: "127.0.0.1", HealthzPort: new(int32(KubeletHealthPort)),
		ClusterDomain:            v.ClusterDomain,
		ContainerRuntimeEndpoint: "unix://" + ContainerdSocket,
		// A kubelet asks containerd, and uses this only if that has no answer; see the node agent.
		CgroupDriver: string(extensionsv1alpha1.CgroupDriverSystemd),
		// Without it, a new kubelet refuses to start on a machine with cgroup v1. Where there is v2 it means nothing.
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

// featureGates keeps what a kubelet needs for the certificate of its server. It refuses to start with serverTLSBootstrap otherwise.
func featureGates(gates map[string]bool) map[string]bool {
	const certificates, group = "RotateKubeletServerCertificate", "AllBeta" // the one is in the other
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
	delete(fields, "logging")                 // nothing is set there, but it is full of zeros
	const periods = "evictionSoftGracePeriod" // of which none is left out
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

// The signals of evictions.
const (
	memory      = "memory.available"
	imageFS     = "imagefs.available"
	imageInodes = "imagefs.inodesFree"
	nodeFS      = "nodefs.available"
	nodeInodes  = "nodefs.inodesFree"
)

// What is used for settings that are not made.
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

// startable takes defaults for limits that a kubelet refuses to start with. The API accepts any text for nodefs.inodesFree, as the
// original does, and there may be Shoots from before it refused the others.
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

// signals takes values in the order of the fields, and defaults for those that are missing.
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

// reserved is what the kubelet keeps for itself and the operating system.
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

// kubeletUnit starts the kubelet once the node agent has written what it needs. A kubelet does not start with what one with another CPU
// manager remembers, so that is removed before; the dots in the pattern are what systemd and the shell would take for quotes.
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
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if settable(key) {
			pairs = append(pairs, key+"="+labels[key])
		}
	}
	return extensionsv1alpha1.Unit{
		Name:    extensionsv1alpha1.OperatingSystemConfigUnitNameKubeletService,
		Command: new(extensionsv1alpha1.CommandStart), Enable: new(true),
		Content: new(fmt.Sprintf(`[Unit]
Description=kubelet
After=containerd.service
Wants=containerd.service
StartLimitIntervalSec=0

[Service]
ExecStartPre=/bin/sh -c 'grep -qs policyName.:.%[6]s. %[7]s || rm -f %[7]s'
ExecStart=%[1]s/kubelet --config=%[2]s --bootstrap-kubeconfig=%[3]s --kubeconfig=%[4]s --node-labels=%[5]s --v=2
Restart=always
RestartSec=2
OOMScoreAdjust=-999
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target
`, extensionsv1alpha1.OperatingSystemConfigFilePathBinaries, extensionsv1alpha1.OperatingSystemConfigFilePathKubeletConfig,
			KubeletBootstrapKubeconfig, KubeletKubeconfig, strings.Join(pairs, ","),
			cpuManagerPolicy(pool.Worker.KubeletConfig(v.Kubelet)), cpuManagerState)),
		FilePaths: []string{
			extensionsv1alpha1.OperatingSystemConfigFilePathKubeletConfig, KubeletCAFile,
			extensionsv1alpha1.OperatingSystemConfigFilePathBinaries + "/kubelet",
			nodeagentconfigv1alpha1.ClusterCAFilePath, // the kubelet's kubeconfig refers to it
		},
	}
}

// settable tells whether a kubelet may set a label of its own node. Those of the kubernetes.io domains are for others, but for a few.
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
