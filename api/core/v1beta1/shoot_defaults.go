package v1beta1

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// DefaultShoot fills in the defaults of a Shoot.
func DefaultShoot(shoot *Shoot) {
	spec := &shoot.Spec
	hasWorkers := len(spec.Provider.Workers) > 0

	if shoot.Namespace == constants.GardenNamespace {
		spec.Tolerations = withProtectedToleration(spec.Tolerations)
	}
	setDefault(&spec.Purpose, ShootPurposeEvaluation)
	setDefault(&spec.SchedulerName, constants.DefaultSchedulerName)
	networking := ensure(&spec.Networking)
	if len(networking.IPFamilies) == 0 {
		networking.IPFamilies = []IPFamily{IPFamilyIPv4}
	}

	defaultShootMaintenance(ensure(&spec.Maintenance), hasWorkers)
	DefaultKubeAPIServer(ensure(&spec.Kubernetes.KubeAPIServer), hasWorkers)
	if hasWorkers {
		defaultKubernetesForWorkers(spec)
	}
	if spec.Kubernetes.ClusterAutoscaler != nil {
		DefaultClusterAutoscaler(spec.Kubernetes.ClusterAutoscaler)
	}
	if spec.Kubernetes.VerticalPodAutoscaler != nil {
		DefaultVerticalPodAutoscaler(spec.Kubernetes.VerticalPodAutoscaler)
	}
	if addons := spec.Addons; addons != nil {
		if addons.KubernetesDashboard != nil && addons.KubernetesDashboard.Enabled {
			setDefault(&addons.KubernetesDashboard.AuthenticationMode, constants.KubernetesDashboardAuthModeToken)
		}
		if addons.NginxIngress != nil {
			setDefault(&addons.NginxIngress.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
		}
	}
}

// defaultKubernetesForWorkers fills in what clusters without workers do not have.
func defaultKubernetesForWorkers(spec *ShootSpec) {
	kubernetes := &spec.Kubernetes
	setDefault(&ensure(&kubernetes.KubeScheduler).Profile, SchedulingProfileBalanced)
	proxy := ensure(&kubernetes.KubeProxy)
	setDefault(&proxy.Mode, ProxyModeIPTables)
	setDefault(&proxy.Enabled, true)

	kubelet := ensure(&kubernetes.Kubelet)
	defaultKubelet(kubelet)
	setDefault(&kubelet.ImageGCHighThresholdPercent, DefaultImageGCHighThresholdPercent)
	setDefault(&kubelet.ImageGCLowThresholdPercent, DefaultImageGCLowThresholdPercent)
	setDefault(&kubelet.SerializeImagePulls, kubelet.MaxParallelImagePulls == nil || *kubelet.MaxParallelImagePulls < 2)
	setDuration(&kubelet.ImageMinimumGCAge, DefaultImageMinimumGCAge)
	setDuration(&kubelet.ImageMaximumGCAge, 0)

	for i := range spec.Provider.Workers {
		defaultWorker(&spec.Provider.Workers[i], spec.Provider.Type)
	}
	defaultKubeControllerManager(ensure(&kubernetes.KubeControllerManager), spec)

	settings := ensure(&spec.Provider.WorkersSettings)
	setDefault(&settings.SSHAccess, SSHAccess{Enabled: true})
	coreDNS := ensure(&ensure(&spec.SystemComponents).CoreDNS)
	autoscaling := ensure(&coreDNS.Autoscaling)
	if autoscaling.Mode != CoreDNSAutoscalingModeClusterProportional {
		autoscaling.Mode = CoreDNSAutoscalingModeHorizontal
	}
}

// DefaultKubeAPIServer fills in the defaults of a kube-apiserver, some of which only clusters with workers have. It is exported for the
// virtual garden, which has the same ones.
func DefaultKubeAPIServer(config *KubeAPIServerConfig, hasWorkers bool) {
	requests := ensure(&config.Requests)
	setDefault(&requests.MaxNonMutatingInflight, 400)
	setDefault(&requests.MaxMutatingInflight, 200)
	setDuration(&config.EventTTL, time.Hour)
	setDefault(&ensure(&config.Logging).Verbosity, 2)
	setDefault(&ensure(&config.EncryptionConfig).Provider.Type, EncryptionProviderTypeAESCBC)
	if hasWorkers {
		setDefault(&config.DefaultNotReadyTolerationSeconds, 300)
		setDefault(&config.DefaultUnreachableTolerationSeconds, 300)
	}
}

// defaultKubeControllerManager expects the defaults of kubelets and networks to be set.
func defaultKubeControllerManager(config *KubeControllerManagerConfig, spec *ShootSpec) {
	setDuration(&config.NodeMonitorGracePeriod, 40*time.Second)

	var ipv4, ipv6 bool
	for _, family := range spec.Networking.IPFamilies {
		ipv4 = ipv4 || family == IPFamilyIPv4
		ipv6 = ipv6 || family == IPFamilyIPv6
	}
	switch {
	case ipv4:
		setDefault(&config.NodeCIDRMaskSize, nodeCIDRMaskSize(spec))
		if ipv6 {
			setDefault(&config.NodeCIDRMaskSizeIPv6, 64)
		}
	case ipv6 && config.NodeCIDRMaskSizeIPv6 == nil:
		setDefault(&config.NodeCIDRMaskSize, 64)
	}
}

// nodeCIDRMaskSize returns the longest prefix that has twice as many addresses as a node can have pods, so that the
// address of a pod is not used again at once.
func nodeCIDRMaskSize(spec *ShootSpec) int32 {
	const unset = -1
	maxPods := int32(unset)
	for _, kubelet := range kubelets(spec) {
		if kubelet.MaxPods != nil {
			maxPods = max(maxPods, *kubelet.MaxPods)
		}
	}
	switch maxPods {
	case unset:
		maxPods = 110 // the kubelet's default
	case 0:
		return 32 // no room for any pod, which validation refuses
	}
	return max(0, int32(32-bits.Len32(2*uint32(maxPods)-1)))
}

func kubelets(spec *ShootSpec) []*KubeletConfig {
	var out []*KubeletConfig
	if spec.Kubernetes.Kubelet != nil {
		out = append(out, spec.Kubernetes.Kubelet)
	}
	for i := range spec.Provider.Workers {
		if kubernetes := spec.Provider.Workers[i].Kubernetes; kubernetes != nil && kubernetes.Kubelet != nil {
			out = append(out, kubernetes.Kubelet)
		}
	}
	return out
}

// defaultKubelet fills in what has a default for the cluster and for single pools alike.
func defaultKubelet(kubelet *KubeletConfig) {
	setDefault(&kubelet.FailSwapOn, true)
	if kubelet.FeatureGates["NodeSwap"] && !*kubelet.FailSwapOn {
		setDefault(&ensure(&kubelet.MemorySwap).SwapBehavior, LimitedSwap)
	}
}

func defaultWorker(worker *Worker, providerType string) {
	setDefault(&worker.UpdateStrategy, AutoRollingUpdate)
	switch *worker.UpdateStrategy {
	case AutoInPlaceUpdate:
		setDefault(&worker.MaxSurge, intstr.FromInt32(0))
		setDefault(&worker.MaxUnavailable, intstr.FromInt32(1))
	case ManualInPlaceUpdate:
		// The user marks machines, so there is nothing to pace.
	default:
		setDefault(&worker.MaxSurge, intstr.FromInt32(1))
		setDefault(&worker.MaxUnavailable, intstr.FromInt32(0))
	}
	if *worker.UpdateStrategy == AutoInPlaceUpdate || *worker.UpdateStrategy == ManualInPlaceUpdate {
		setDefault(&ensure(&worker.MachineControllerManager).DisableHealthTimeout, true)
	}
	setDefault(&worker.CRI, CRI{Name: CRINameContainerD})
	setDefault(&worker.SystemComponents, WorkerSystemComponents{Allow: true})
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		defaultKubelet(worker.Kubernetes.Kubelet)
	}
	if worker.ControlPlane != nil && worker.ControlPlane.Exposure != nil && worker.ControlPlane.Exposure.Extension != nil {
		setDefault(&worker.ControlPlane.Exposure.Extension.Type, providerType)
	}
}

func defaultShootMaintenance(maintenance *Maintenance, hasWorkers bool) {
	if maintenance.AutoUpdate == nil {
		maintenance.AutoUpdate = &MaintenanceAutoUpdate{KubernetesVersion: true}
	}
	if hasWorkers {
		setDefault(&maintenance.AutoUpdate.MachineImageVersion, true)
	}
	if maintenance.TimeWindow == nil {
		// A whole hour between 22:00 and 06:00 UTC, so that the landscape's maintenances are spread over the night.
		begin := (22 + rand.IntN(8)) % 24
		maintenance.TimeWindow = &MaintenanceTimeWindow{
			Begin: fmt.Sprintf("%02d0000+0000", begin),
			End:   fmt.Sprintf("%02d0000+0000", (begin+1)%24),
		}
	}
	if rotation := maintenance.AutoRotation; rotation != nil && rotation.Credentials != nil {
		const week = 7 * 24 * time.Hour
		for _, config := range []*MaintenanceRotationConfig{
			rotation.Credentials.Observability, rotation.Credentials.SSHKeypair, rotation.Credentials.ETCDEncryptionKey,
		} {
			if config != nil {
				setDuration(&config.RotationPeriod, week)
			}
		}
	}
}

// DefaultClusterAutoscaler fills in the defaults of a cluster-autoscaler's configuration. It is exported for Shoots that configure none.
func DefaultClusterAutoscaler(config *ClusterAutoscaler) {
	setDuration(&config.ScaleDownDelayAfterAdd, time.Hour)
	setDuration(&config.ScaleDownDelayAfterDelete, 0)
	setDuration(&config.ScaleDownDelayAfterFailure, 3*time.Minute)
	setDuration(&config.ScaleDownUnneededTime, 30*time.Minute)
	setDefault(&config.ScaleDownUtilizationThreshold, 0.5)
	setDuration(&config.ScanInterval, 10*time.Second)
	setDefault(&config.Expander, ExpanderLeastWaste)
	setDuration(&config.MaxNodeProvisionTime, 20*time.Minute)
	setDefault(&config.MaxGracefulTerminationSeconds, 600)
	setDuration(&config.NewPodScaleUpDelay, 0)
	setDefault(&config.IgnoreDaemonsetsUtilization, false)
	setDefault(&config.Verbosity, 2)
	if config.MaxEmptyBulkDelete != nil {
		setDefault(&config.MaxScaleDownParallelism, *config.MaxEmptyBulkDelete)
	}
	setDefault(&config.MaxScaleDownParallelism, 10)
	setDefault(&config.MaxDrainParallelism, 1)
	setDuration(&config.InitialNodeGroupBackoffDuration, 5*time.Minute)
	setDuration(&config.MaxNodeGroupBackoffDuration, 30*time.Minute)
	setDuration(&config.NodeGroupBackoffResetTimeout, 3*time.Hour)
	setDefault(&config.EmitPerNodeGroupMetrics, false)
	setDuration(&config.MaxBinpackingTime, 5*time.Minute)
}

// DefaultVerticalPodAutoscaler fills in the defaults of a vertical pod autoscaler's configuration. It is exported for
// admission plugins that turn the autoscaler on.
func DefaultVerticalPodAutoscaler(config *VerticalPodAutoscaler) {
	setDuration(&config.EvictAfterOOMThreshold, 10*time.Minute)
	setDefault(&config.EvictionRateBurst, 1)
	setDefault(&config.EvictionRateLimit, -1)
	setDefault(&config.EvictionTolerance, 0.5)
	setDefault(&config.RecommendationMarginFraction, 0.15)
	setDuration(&config.UpdaterInterval, time.Minute)
	setDuration(&config.RecommenderInterval, time.Minute)
	setDefault(&config.TargetCPUPercentile, 0.9)
	setDefault(&config.RecommendationLowerBoundCPUPercentile, 0.5)
	setDefault(&config.RecommendationUpperBoundCPUPercentile, 0.95)
	setDefault(&config.TargetMemoryPercentile, 0.9)
	setDefault(&config.RecommendationLowerBoundMemoryPercentile, 0.5)
	setDefault(&config.RecommendationUpperBoundMemoryPercentile, 0.95)
	setDuration(&config.CPUHistogramDecayHalfLife, 24*time.Hour)
	setDuration(&config.MemoryHistogramDecayHalfLife, 24*time.Hour)
	setDuration(&config.MemoryAggregationInterval, 24*time.Hour)
	setDefault(&config.MemoryAggregationIntervalCount, 8)
	setDefault(&config.RecommenderUpdateWorkerCount, 10)
}
