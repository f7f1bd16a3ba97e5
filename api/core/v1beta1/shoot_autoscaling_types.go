package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterAutoscaler configures the cluster-autoscaler, which adds and removes nodes.
type ClusterAutoscaler struct {
	// ScaleDownDelayAfterAdd is how long after adding a node none is removed. "1h" is the default.
	// +optional
	ScaleDownDelayAfterAdd *metav1.Duration `json:"scaleDownDelayAfterAdd,omitempty" protobuf:"bytes,1,opt,name=scaleDownDelayAfterAdd"`
	// ScaleDownDelayAfterDelete is how long after removing a node no other is. "0s" is the default, which stands for
	// the scan interval.
	// +optional
	ScaleDownDelayAfterDelete *metav1.Duration `json:"scaleDownDelayAfterDelete,omitempty" protobuf:"bytes,2,opt,name=scaleDownDelayAfterDelete"`
	// ScaleDownDelayAfterFailure is how long after a failed removal none is tried. "3m" is the default.
	// +optional
	ScaleDownDelayAfterFailure *metav1.Duration `json:"scaleDownDelayAfterFailure,omitempty" protobuf:"bytes,3,opt,name=scaleDownDelayAfterFailure"`
	// ScaleDownUnneededTime is how long a node must be superfluous before it is removed. "30m" is the default.
	// +optional
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty" protobuf:"bytes,4,opt,name=scaleDownUnneededTime"`
	// ScaleDownUtilizationThreshold is how little of a node must be requested for it to be superfluous, between 0 and
	// 1. 0.5 is the default.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty" protobuf:"fixed64,5,opt,name=scaleDownUtilizationThreshold"`
	// ScanInterval is how often the cluster is checked. "10s" is the default.
	// +optional
	ScanInterval *metav1.Duration `json:"scanInterval,omitempty" protobuf:"bytes,6,opt,name=scanInterval"`
	// Expander says which pool grows if several could, as comma-separated list of modes. "least-waste" is the
	// default.
	// +optional
	Expander *ExpanderMode `json:"expander,omitempty" protobuf:"bytes,7,opt,name=expander,casttype=ExpanderMode"`
	// MaxNodeProvisionTime is how long a node may take to join. "20m" is the default.
	// +optional
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty" protobuf:"bytes,8,opt,name=maxNodeProvisionTime"`
	// MaxGracefulTerminationSeconds is how long pods get to end when their node is removed. 600 is the default.
	// +optional
	MaxGracefulTerminationSeconds *int32 `json:"maxGracefulTerminationSeconds,omitempty" protobuf:"varint,9,opt,name=maxGracefulTerminationSeconds"`
	// IgnoreTaints are taints that are ignored when the autoscaler thinks about new nodes.
	//
	// Deprecated: Use startupTaints or statusTaints instead.
	// +optional
	IgnoreTaints []string `json:"ignoreTaints,omitempty" protobuf:"bytes,10,rep,name=ignoreTaints"`
	// NewPodScaleUpDelay is how long a pod must be pending before it counts. "0s" is the default.
	// +optional
	NewPodScaleUpDelay *metav1.Duration `json:"newPodScaleUpDelay,omitempty" protobuf:"bytes,11,opt,name=newPodScaleUpDelay"`
	// MaxEmptyBulkDelete is how many empty nodes are removed at once.
	//
	// Deprecated: Use maxScaleDownParallelism instead.
	// +optional
	MaxEmptyBulkDelete *int32 `json:"maxEmptyBulkDelete,omitempty" protobuf:"varint,12,opt,name=maxEmptyBulkDelete"`
	// IgnoreDaemonsetsUtilization leaves pods of DaemonSets out when the use of a node is counted. False is the
	// default.
	// +optional
	IgnoreDaemonsetsUtilization *bool `json:"ignoreDaemonsetsUtilization,omitempty" protobuf:"varint,13,opt,name=ignoreDaemonsetsUtilization"`
	// Verbosity is the level of the log. 2 is the default.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty" protobuf:"varint,14,opt,name=verbosity"`
	// StartupTaints are taints that a node has until it is ready; the autoscaler expects it to lose them.
	// +optional
	StartupTaints []string `json:"startupTaints,omitempty" protobuf:"bytes,15,rep,name=startupTaints"`
	// StatusTaints are taints that say that a node cannot be used for a while; the autoscaler ignores them when it
	// thinks about new nodes.
	// +optional
	StatusTaints []string `json:"statusTaints,omitempty" protobuf:"bytes,16,rep,name=statusTaints"`
	// MaxScaleDownParallelism is how many nodes are removed at once, empty or not. 10 is the default.
	// +optional
	MaxScaleDownParallelism *int32 `json:"maxScaleDownParallelism,omitempty" protobuf:"varint,17,opt,name=maxScaleDownParallelism"`
	// MaxDrainParallelism is how many nodes with pods are drained at once. 1 is the default.
	// +optional
	MaxDrainParallelism *int32 `json:"maxDrainParallelism,omitempty" protobuf:"varint,18,opt,name=maxDrainParallelism"`
	// InitialNodeGroupBackoffDuration is how long a pool rests after it failed to grow for the first time. "5m" is
	// the default.
	// +optional
	InitialNodeGroupBackoffDuration *metav1.Duration `json:"initialNodeGroupBackoffDuration,omitempty" protobuf:"bytes,19,opt,name=initialNodeGroupBackoffDuration"`
	// MaxNodeGroupBackoffDuration is how long a pool rests at most. "30m" is the default.
	// +optional
	MaxNodeGroupBackoffDuration *metav1.Duration `json:"maxNodeGroupBackoffDuration,omitempty" protobuf:"bytes,20,opt,name=maxNodeGroupBackoffDuration"`
	// NodeGroupBackoffResetTimeout is after what time a failure is forgotten. "3h" is the default.
	// +optional
	NodeGroupBackoffResetTimeout *metav1.Duration `json:"nodeGroupBackoffResetTimeout,omitempty" protobuf:"bytes,21,opt,name=nodeGroupBackoffResetTimeout"`
	// EmitPerNodeGroupMetrics makes it report metrics by pool. False is the default.
	// +optional
	EmitPerNodeGroupMetrics *bool `json:"emitPerNodeGroupMetrics,omitempty" protobuf:"varint,22,opt,name=emitPerNodeGroupMetrics"`
	// MaxBinpackingTime is how long one round may think about where pods fit. "5m" is the default.
	// +optional
	MaxBinpackingTime *metav1.Duration `json:"maxBinpackingTime,omitempty" protobuf:"bytes,23,opt,name=maxBinpackingTime"`
	// Autoscaling bounds the vertical scaling of the autoscaler itself.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty" protobuf:"bytes,24,opt,name=autoscaling"`
}

// ExpanderMode says which worker pool grows if several could.
type ExpanderMode string

const (
	// ExpanderLeastWaste takes the pool that leaves the least unused.
	ExpanderLeastWaste ExpanderMode = "least-waste"
	// ExpanderMostPods takes the pool that fits the most pods.
	ExpanderMostPods ExpanderMode = "most-pods"
	// ExpanderPriority takes the pool with the highest priority.
	ExpanderPriority ExpanderMode = "priority"
	// ExpanderRandom takes any pool.
	ExpanderRandom ExpanderMode = "random"
	// ExpanderLeastNodes takes the pool that needs the fewest new nodes.
	ExpanderLeastNodes ExpanderMode = "least-nodes"
)

// VerticalPodAutoscaler configures a vertical pod autoscaler in the cluster, which adapts the requests of pods.
type VerticalPodAutoscaler struct {
	// Enabled turns it on.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
	// EvictAfterOOMThreshold is within what time after its start a pod that ran out of memory is evicted to get more.
	// "10m" is the default.
	// +optional
	EvictAfterOOMThreshold *metav1.Duration `json:"evictAfterOOMThreshold,omitempty" protobuf:"bytes,2,opt,name=evictAfterOOMThreshold"`
	// EvictionRateBurst is how many pods may be evicted at once. 1 is the default.
	// +optional
	EvictionRateBurst *int32 `json:"evictionRateBurst,omitempty" protobuf:"varint,3,opt,name=evictionRateBurst"`
	// EvictionRateLimit is how many pods are evicted per second. -1, the default, stands for no limit.
	// +optional
	EvictionRateLimit *float64 `json:"evictionRateLimit,omitempty" protobuf:"fixed64,4,opt,name=evictionRateLimit"`
	// EvictionTolerance is the part of a workload's replicas that may be evicted. 0.5 is the default.
	// +optional
	EvictionTolerance *float64 `json:"evictionTolerance,omitempty" protobuf:"fixed64,5,opt,name=evictionTolerance"`
	// RecommendationMarginFraction is the margin on top of the recommendation, as fraction. 0.15 is the default.
	// +optional
	RecommendationMarginFraction *float64 `json:"recommendationMarginFraction,omitempty" protobuf:"fixed64,6,opt,name=recommendationMarginFraction"`
	// UpdaterInterval is how often the updater checks. "1m" is the default.
	// +optional
	UpdaterInterval *metav1.Duration `json:"updaterInterval,omitempty" protobuf:"bytes,7,opt,name=updaterInterval"`
	// RecommenderInterval is how often the recommender checks. "1m" is the default.
	// +optional
	RecommenderInterval *metav1.Duration `json:"recommenderInterval,omitempty" protobuf:"bytes,8,opt,name=recommenderInterval"`
	// TargetCPUPercentile is the percentile of CPU usage for the target, between 0 and 1. 0.9 is the default.
	// +optional
	TargetCPUPercentile *float64 `json:"targetCPUPercentile,omitempty" protobuf:"fixed64,9,opt,name=targetCPUPercentile"`
	// RecommendationLowerBoundCPUPercentile is the percentile of CPU usage for the lower bound. 0.5 is the default.
	// +optional
	RecommendationLowerBoundCPUPercentile *float64 `json:"recommendationLowerBoundCPUPercentile,omitempty" protobuf:"fixed64,10,opt,name=recommendationLowerBoundCPUPercentile"`
	// RecommendationUpperBoundCPUPercentile is the percentile of CPU usage for the upper bound. 0.95 is the default.
	// +optional
	RecommendationUpperBoundCPUPercentile *float64 `json:"recommendationUpperBoundCPUPercentile,omitempty" protobuf:"fixed64,11,opt,name=recommendationUpperBoundCPUPercentile"`
	// TargetMemoryPercentile is the percentile of memory usage for the target, between 0 and 1. 0.9 is the default.
	// +optional
	TargetMemoryPercentile *float64 `json:"targetMemoryPercentile,omitempty" protobuf:"fixed64,12,opt,name=targetMemoryPercentile"`
	// RecommendationLowerBoundMemoryPercentile is the percentile of memory usage for the lower bound. 0.5 is the
	// default.
	// +optional
	RecommendationLowerBoundMemoryPercentile *float64 `json:"recommendationLowerBoundMemoryPercentile,omitempty" protobuf:"fixed64,13,opt,name=recommendationLowerBoundMemoryPercentile"`
	// RecommendationUpperBoundMemoryPercentile is the percentile of memory usage for the upper bound. 0.95 is the
	// default.
	// +optional
	RecommendationUpperBoundMemoryPercentile *float64 `json:"recommendationUpperBoundMemoryPercentile,omitempty" protobuf:"fixed64,14,opt,name=recommendationUpperBoundMemoryPercentile"`
	// CPUHistogramDecayHalfLife is the time in which a CPU sample loses half of its weight. "24h" is the default.
	// +optional
	CPUHistogramDecayHalfLife *metav1.Duration `json:"cpuHistogramDecayHalfLife,omitempty" protobuf:"bytes,15,opt,name=cpuHistogramDecayHalfLife"`
	// MemoryHistogramDecayHalfLife is the time in which a memory sample loses half of its weight. "24h" is the
	// default.
	// +optional
	MemoryHistogramDecayHalfLife *metav1.Duration `json:"memoryHistogramDecayHalfLife,omitempty" protobuf:"bytes,16,opt,name=memoryHistogramDecayHalfLife"`
	// MemoryAggregationInterval is the time over which the peak of memory usage is taken. "24h" is the default.
	// +optional
	MemoryAggregationInterval *metav1.Duration `json:"memoryAggregationInterval,omitempty" protobuf:"bytes,17,opt,name=memoryAggregationInterval"`
	// MemoryAggregationIntervalCount is how many such intervals are remembered. 8 is the default.
	// +optional
	MemoryAggregationIntervalCount *int64 `json:"memoryAggregationIntervalCount,omitempty" protobuf:"varint,18,opt,name=memoryAggregationIntervalCount"`
	// FeatureGates turn features of the autoscaler on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty" protobuf:"bytes,19,rep,name=featureGates"`
	// MaxAllowed is the most that is recommended for a container.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty" protobuf:"bytes,20,rep,name=maxAllowed"`
	// RecommenderUpdateWorkerCount is how many workers of the recommender update objects. 10 is the default.
	// +optional
	RecommenderUpdateWorkerCount *int64 `json:"recommenderUpdateWorkerCount,omitempty" protobuf:"varint,21,opt,name=recommenderUpdateWorkerCount"`
}
