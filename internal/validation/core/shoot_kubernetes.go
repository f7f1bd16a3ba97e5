package core

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/validation/ordered"
)

func shootKubernetes(spec *corev1beta1.ShootSpec, version kubeVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	kubernetes := &spec.Kubernetes
	if kubernetes.Version == "" {
		errs = append(errs, field.Required(path.Child("version"), "must be set"))
	}
	if kubernetes.KubeAPIServer != nil {
		errs = append(errs, kubeAPIServer(kubernetes.KubeAPIServer, spec, version, path.Child("kubeAPIServer"))...)
	}
	if kubernetes.ETCD != nil {
		if main := kubernetes.ETCD.Main; main != nil {
			errs = append(errs, controlPlaneAutoscaling(main.Autoscaling, "50m", "300M", path.Child("etcd", "main", "autoscaling"))...)
		}
		if events := kubernetes.ETCD.Events; events != nil {
			errs = append(errs, controlPlaneAutoscaling(events.Autoscaling, "10m", "60M", path.Child("etcd", "events", "autoscaling"))...)
		}
	}
	if kubernetes.KubeControllerManager != nil {
		errs = append(errs, kubeControllerManager(kubernetes.KubeControllerManager, spec, version, path.Child("kubeControllerManager"))...)
	}
	if spec.Workerless() {
		return errs // the settings below are refused anyway
	}
	if kubernetes.KubeScheduler != nil {
		errs = append(errs, kubeScheduler(kubernetes.KubeScheduler, version, path.Child("kubeScheduler"))...)
	}
	if kubernetes.KubeProxy != nil {
		errs = append(errs, kubeProxy(kubernetes.KubeProxy, version, path.Child("kubeProxy"))...)
	}
	if kubernetes.Kubelet != nil {
		errs = append(errs, kubeletConfig(kubernetes.Kubelet, version, path.Child("kubelet"))...)
	}
	if kubernetes.ClusterAutoscaler != nil {
		errs = append(errs, clusterAutoscaler(kubernetes.ClusterAutoscaler, version, path.Child("clusterAutoscaler"))...)
	}
	if kubernetes.VerticalPodAutoscaler != nil {
		errs = append(errs, verticalPodAutoscaler(kubernetes.VerticalPodAutoscaler, path.Child("verticalPodAutoscaler"))...)
	}
	return errs
}

// controlPlaneAutoscaling checks the minimum of resources of a component, which must be enough to start.
func controlPlaneAutoscaling(autoscaling *corev1beta1.ControlPlaneAutoscaling, minCPU, minMemory string, path *field.Path) field.ErrorList {
	if autoscaling == nil {
		return nil
	}
	path = path.Child("minAllowed")
	if len(autoscaling.MinAllowed) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one entry")}
	}
	var errs field.ErrorList
	for name, quantity := range ordered.Map(autoscaling.MinAllowed) {
		lowest := map[corev1.ResourceName]string{corev1.ResourceCPU: minCPU, corev1.ResourceMemory: minMemory}[name]
		if lowest == "" {
			errs = append(errs, field.NotSupported(path.Child(string(name)), name, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}))
		} else if quantity.Cmp(resource.MustParse(lowest)) < 0 {
			errs = append(errs, field.Invalid(path.Child(string(name)), quantity.String(), "must be at least "+lowest))
		}
	}
	return errs
}

func kubeControllerManager(config *corev1beta1.KubeControllerManagerConfig, spec *corev1beta1.ShootSpec, version kubeVersion, path *field.Path) field.ErrorList {
	errs := featureGates(config.FeatureGates, version, path.Child("featureGates"))
	if config.PodEvictionTimeout != nil && version.atLeast(1, 33) { //nolint:staticcheck // in use up to Kubernetes 1.32
		errs = append(errs, field.Forbidden(path.Child("podEvictionTimeout"), "is not possible from Kubernetes 1.33"))
	}
	errs = append(errs, positive(config.NodeMonitorGracePeriod, path.Child("nodeMonitorGracePeriod"))...)
	if scaler := config.HorizontalPodAutoscaler; scaler != nil {
		path := path.Child("horizontalPodAutoscaler")
		errs = append(errs, positive(scaler.CPUInitializationPeriod, path.Child("cpuInitializationPeriod"))...)
		errs = append(errs, positive(scaler.DownscaleStabilization, path.Child("downscaleStabilization"))...)
		errs = append(errs, positive(scaler.InitialReadinessDelay, path.Child("initialReadinessDelay"))...)
		if scaler.SyncPeriod != nil && scaler.SyncPeriod.Duration < time.Second {
			errs = append(errs, field.Invalid(path.Child("syncPeriod"), scaler.SyncPeriod.Duration.String(), "must be at least a second"))
		}
		if scaler.Tolerance != nil && *scaler.Tolerance <= 0 {
			errs = append(errs, field.Invalid(path.Child("tolerance"), *scaler.Tolerance, "must be positive"))
		}
	}
	if spec.Networking == nil {
		return errs
	}
	return append(errs, nodeCIDRMasks(config, spec, path)...)
}

// nodeCIDRMasks checks that the network of each node has enough addresses for its pods, in each IP family.
func nodeCIDRMasks(config *corev1beta1.KubeControllerManagerConfig, spec *corev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	families := spec.Networking.IPFamilies
	ipv4 := len(families) == 0 || slices.Contains(families, corev1beta1.IPFamilyIPv4)
	ipv6 := slices.Contains(families, corev1beta1.IPFamilyIPv6)
	maxPods := largestMaxPods(spec)

	check := func(size *int32, bitsOfFamily, lowest, highest int32, path *field.Path) {
		if size == nil {
			return
		}
		if *size < lowest || *size > highest {
			errs = append(errs, field.Invalid(path, *size, "must be between "+strconv.Itoa(int(lowest))+" and "+strconv.Itoa(int(highest))))
			return
		}
		// Network and broadcast address are no addresses of pods.
		if room := bitsOfFamily - *size; room < 31 && int64(1)<<room-2 < int64(maxPods) {
			errs = append(errs, field.Invalid(path, *size, "leaves no room for "+strconv.Itoa(int(maxPods))+" pods"))
		}
	}
	switch {
	case ipv4:
		check(config.NodeCIDRMaskSize, 32, 16, 28, path.Child("nodeCIDRMaskSize"))
	case config.NodeCIDRMaskSize != nil && config.NodeCIDRMaskSizeIPv6 != nil:
		errs = append(errs, field.Forbidden(path.Child("nodeCIDRMaskSize"), "only one of the sizes can be set for one IP family"))
		check(config.NodeCIDRMaskSizeIPv6, 128, 64, 128, path.Child("nodeCIDRMaskSizeIPv6"))
	default:
		check(config.NodeCIDRMaskSize, 128, 64, 128, path.Child("nodeCIDRMaskSize"))
	}
	if config.NodeCIDRMaskSizeIPv6 != nil && ipv4 {
		if !ipv6 {
			errs = append(errs, field.Forbidden(path.Child("nodeCIDRMaskSizeIPv6"), "needs the IP family IPv6"))
		} else {
			check(config.NodeCIDRMaskSizeIPv6, 128, 64, 128, path.Child("nodeCIDRMaskSizeIPv6"))
		}
	}
	return errs
}

// largestMaxPods returns how many pods a node of the cluster can have at most.
func largestMaxPods(spec *corev1beta1.ShootSpec) int32 {
	const kubeletDefault = 110
	largest := int32(0)
	if spec.Kubernetes.Kubelet != nil {
		largest = ptr.Deref(spec.Kubernetes.Kubelet.MaxPods, 0)
	}
	for _, worker := range spec.Provider.Workers {
		if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
			largest = max(largest, ptr.Deref(worker.Kubernetes.Kubelet.MaxPods, 0))
		}
	}
	if largest == 0 {
		return kubeletDefault
	}
	return largest
}

func kubeScheduler(config *corev1beta1.KubeSchedulerConfig, version kubeVersion, path *field.Path) field.ErrorList {
	errs := featureGates(config.FeatureGates, version, path.Child("featureGates"))
	if config.Profile != nil {
		errs = append(errs, supported(*config.Profile, []corev1beta1.SchedulingProfile{corev1beta1.SchedulingProfileBalanced, corev1beta1.SchedulingProfileBinPacking}, path.Child("profile"))...)
	}
	if volumes := config.KubeMaxPDVols; volumes != nil { //nolint:staticcheck // in use up to Kubernetes 1.34
		path := path.Child("kubeMaxPDVols")
		if version.atLeast(1, 35) {
			errs = append(errs, field.Forbidden(path, "is not possible from Kubernetes 1.35"))
		} else if n, err := strconv.Atoi(*volumes); err != nil || n <= 0 {
			errs = append(errs, field.Invalid(path, *volumes, "must be a positive number"))
		}
	}
	return errs
}

func kubeProxy(config *corev1beta1.KubeProxyConfig, version kubeVersion, path *field.Path) field.ErrorList {
	errs := featureGates(config.FeatureGates, version, path.Child("featureGates"))
	if config.Mode == nil {
		return append(errs, field.Required(path.Child("mode"), "must be set"))
	}
	errs = append(errs, supported(*config.Mode, []corev1beta1.ProxyMode{corev1beta1.ProxyModeIPTables, corev1beta1.ProxyModeIPVS, corev1beta1.ProxyModeNFTables}, path.Child("mode"))...)
	if gate, ok := config.FeatureGates["NFTablesProxyMode"]; ok && !gate && *config.Mode == corev1beta1.ProxyModeNFTables {
		errs = append(errs, field.Invalid(path.Child("mode"), *config.Mode, "needs the feature gate NFTablesProxyMode"))
	}
	return errs
}

var expanders = []corev1beta1.ExpanderMode{
	corev1beta1.ExpanderLeastWaste, corev1beta1.ExpanderLeastNodes, corev1beta1.ExpanderMostPods, corev1beta1.ExpanderPriority, corev1beta1.ExpanderRandom,
}

func clusterAutoscaler(config *corev1beta1.ClusterAutoscaler, version kubeVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, duration(config.ScaleDownDelayAfterAdd, path.Child("scaleDownDelayAfterAdd"))...)
	errs = append(errs, duration(config.ScaleDownDelayAfterDelete, path.Child("scaleDownDelayAfterDelete"))...)
	errs = append(errs, duration(config.ScaleDownDelayAfterFailure, path.Child("scaleDownDelayAfterFailure"))...)
	errs = append(errs, duration(config.ScaleDownUnneededTime, path.Child("scaleDownUnneededTime"))...)
	errs = append(errs, fraction(config.ScaleDownUtilizationThreshold, path.Child("scaleDownUtilizationThreshold"))...)
	errs = append(errs, duration(config.ScanInterval, path.Child("scanInterval"))...)
	errs = append(errs, duration(config.MaxNodeProvisionTime, path.Child("maxNodeProvisionTime"))...)
	errs = append(errs, duration(config.NewPodScaleUpDelay, path.Child("newPodScaleUpDelay"))...)
	errs = append(errs, duration(config.InitialNodeGroupBackoffDuration, path.Child("initialNodeGroupBackoffDuration"))...)
	errs = append(errs, duration(config.MaxNodeGroupBackoffDuration, path.Child("maxNodeGroupBackoffDuration"))...)
	errs = append(errs, duration(config.NodeGroupBackoffResetTimeout, path.Child("nodeGroupBackoffResetTimeout"))...)
	errs = append(errs, duration(config.MaxBinpackingTime, path.Child("maxBinpackingTime"))...)
	errs = append(errs, nonNegativeInt(config.MaxGracefulTerminationSeconds, path.Child("maxGracefulTerminationSeconds"))...)
	errs = append(errs, nonNegativeInt(config.MaxScaleDownParallelism, path.Child("maxScaleDownParallelism"))...)
	errs = append(errs, nonNegativeInt(config.MaxDrainParallelism, path.Child("maxDrainParallelism"))...)
	errs = append(errs, nonNegativeInt(config.Verbosity, path.Child("verbosity"))...)
	if config.Expander != nil {
		for _, mode := range strings.Split(string(*config.Expander), ",") {
			errs = append(errs, supported(corev1beta1.ExpanderMode(mode), expanders, path.Child("expander"))...)
		}
	}
	if bulk := config.MaxEmptyBulkDelete; bulk != nil { //nolint:staticcheck // the old name of maxScaleDownParallelism
		path := path.Child("maxEmptyBulkDelete")
		if version.atLeast(1, 33) {
			errs = append(errs, field.Forbidden(path, "is not possible from Kubernetes 1.33; use maxScaleDownParallelism"))
		}
		if *bulk < 0 || config.MaxScaleDownParallelism != nil && *bulk != *config.MaxScaleDownParallelism {
			errs = append(errs, field.Invalid(path, *bulk, "must not differ from maxScaleDownParallelism"))
		}
	}
	if len(config.IgnoreTaints) > 0 && version.atLeast(1, 32) { //nolint:staticcheck // refused here
		errs = append(errs, field.Forbidden(path.Child("ignoreTaints", "IgnoreTaints"), "is not possible any more; use startupTaints or statusTaints"))
	}
	errs = append(errs, autoscalerTaints(config.StartupTaints, path.Child("startupTaints"))...)
	errs = append(errs, autoscalerTaints(config.StatusTaints, path.Child("statusTaints"))...)
	return append(errs, controlPlaneAutoscaling(config.Autoscaling, "10m", "30M", path.Child("autoscaling"))...)
}

func autoscalerTaints(taints []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, taint := range taints {
		path := path.Index(i)
		if slices.Contains(taints[:i], taint) {
			errs = append(errs, field.Duplicate(path, taint))
		}
		if taint == constants.TaintNodeCriticalComponentsNotReady {
			errs = append(errs, field.Forbidden(path, "is known to the autoscaler already"))
		}
		for _, msg := range validation.IsQualifiedName(taint) {
			errs = append(errs, field.Invalid(path, taint, msg))
		}
	}
	return errs
}

func verticalPodAutoscaler(config *corev1beta1.VerticalPodAutoscaler, path *field.Path) field.ErrorList {
	errs := autoscalerFeatureGates(config.FeatureGates, path.Child("featureGates"))
	errs = append(errs, autoscalerResources(config.MaxAllowed, path.Child("maxAllowed"))...)
	errs = append(errs, duration(config.EvictAfterOOMThreshold, path.Child("evictAfterOOMThreshold"))...)
	errs = append(errs, nonNegativeInt(config.EvictionRateBurst, path.Child("evictionRateBurst"))...)
	errs = append(errs, fraction(config.EvictionTolerance, path.Child("evictionTolerance"))...)
	errs = append(errs, fraction(config.RecommendationMarginFraction, path.Child("recommendationMarginFraction"))...)
	errs = append(errs, duration(config.UpdaterInterval, path.Child("updaterInterval"))...)
	errs = append(errs, duration(config.RecommenderInterval, path.Child("recommenderInterval"))...)
	errs = append(errs, duration(config.CPUHistogramDecayHalfLife, path.Child("cpuHistogramDecayHalfLife"))...)
	errs = append(errs, duration(config.MemoryHistogramDecayHalfLife, path.Child("memoryHistogramDecayHalfLife"))...)
	errs = append(errs, duration(config.MemoryAggregationInterval, path.Child("memoryAggregationInterval"))...)
	errs = append(errs, nonNegativeInt(config.MemoryAggregationIntervalCount, path.Child("memoryAggregationIntervalCount"))...)
	errs = append(errs, nonNegativeInt(config.RecommenderUpdateWorkerCount, path.Child("recommenderUpdateWorkerCount"))...)
	for name, value := range ordered.Map(map[string]*float64{
		"targetCPUPercentile": config.TargetCPUPercentile, "targetMemoryPercentile": config.TargetMemoryPercentile,
		"recommendationLowerBoundCPUPercentile": config.RecommendationLowerBoundCPUPercentile, "recommendationUpperBoundCPUPercentile": config.RecommendationUpperBoundCPUPercentile,
		"recommendationLowerBoundMemoryPercentile": config.RecommendationLowerBoundMemoryPercentile, "recommendationUpperBoundMemoryPercentile": config.RecommendationUpperBoundMemoryPercentile,
	}) {
		errs = append(errs, fraction(value, path.Child(name))...)
	}
	return errs
}
