package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes is the Kubernetes version of a cluster and the configuration of its components.
type Kubernetes struct {
	// ClusterAutoscaler adds and removes nodes.
	// +optional
	ClusterAutoscaler *ClusterAutoscaler `json:"clusterAutoscaler,omitempty" protobuf:"bytes,2,opt,name=clusterAutoscaler"`
	// KubeAPIServer configures the kube-apiserver.
	// +optional
	KubeAPIServer *KubeAPIServerConfig `json:"kubeAPIServer,omitempty" protobuf:"bytes,3,opt,name=kubeAPIServer"`
	// KubeControllerManager configures the kube-controller-manager.
	// +optional
	KubeControllerManager *KubeControllerManagerConfig `json:"kubeControllerManager,omitempty" protobuf:"bytes,4,opt,name=kubeControllerManager"`
	// KubeScheduler configures the kube-scheduler.
	// +optional
	KubeScheduler *KubeSchedulerConfig `json:"kubeScheduler,omitempty" protobuf:"bytes,5,opt,name=kubeScheduler"`
	// KubeProxy configures the kube-proxy.
	// +optional
	KubeProxy *KubeProxyConfig `json:"kubeProxy,omitempty" protobuf:"bytes,6,opt,name=kubeProxy"`
	// Kubelet configures the kubelets of all worker pools that have no configuration of their own.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty" protobuf:"bytes,7,opt,name=kubelet"`
	// Version is the Kubernetes version, "1.36.1" or "1.36"; without a patch version, the newest supported one is
	// taken. It can be raised by one minor version at a time and never lowered.
	// +optional
	Version string `json:"version,omitempty" protobuf:"bytes,8,opt,name=version"`
	// VerticalPodAutoscaler adapts the requests of pods in the cluster.
	// +optional
	VerticalPodAutoscaler *VerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty" protobuf:"bytes,9,opt,name=verticalPodAutoscaler"`
	// ETCD configures the etcd clusters of the control plane.
	// +optional
	ETCD *ETCD `json:"etcd,omitempty" protobuf:"bytes,11,opt,name=etcd"`
}

// KubernetesConfig is what all Kubernetes components have in common.
type KubernetesConfig struct {
	// FeatureGates turn features on or off. Gates that the version does not know are refused.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty" protobuf:"bytes,1,rep,name=featureGates"`
}

// KubeControllerManagerConfig configures the kube-controller-manager.
type KubeControllerManagerConfig struct {
	// KubernetesConfig is what all Kubernetes components have in common.
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// HorizontalPodAutoscaler configures the controller for HorizontalPodAutoscalers.
	// +optional
	HorizontalPodAutoscaler *HorizontalPodAutoscalerConfig `json:"horizontalPodAutoscaler,omitempty" protobuf:"bytes,2,opt,name=horizontalPodAutoscaler"`
	// NodeCIDRMaskSize is the length of the prefix of each node's IPv4 pod range. It follows from the largest maxPods
	// by default, which makes 24 for 110 pods. Cannot be changed, except by the first switch to dual-stack.
	// +optional
	NodeCIDRMaskSize *int32 `json:"nodeCIDRMaskSize,omitempty" protobuf:"varint,3,opt,name=nodeCIDRMaskSize"`
	// PodEvictionTimeout is how long pods stay on a node that failed.
	//
	// Deprecated: Not used any more: see defaultNotReadyTolerationSeconds of the kube-apiserver.
	// +optional
	PodEvictionTimeout *metav1.Duration `json:"podEvictionTimeout,omitempty" protobuf:"bytes,4,opt,name=podEvictionTimeout"`
	// NodeMonitorGracePeriod is how long a node may be silent before it counts as not ready. "40s" is the default.
	// +optional
	NodeMonitorGracePeriod *metav1.Duration `json:"nodeMonitorGracePeriod,omitempty" protobuf:"bytes,5,opt,name=nodeMonitorGracePeriod"`
	// NodeCIDRMaskSizeIPv6 is the length of the prefix of each node's IPv6 pod range, 64 by default for dual-stack.
	// Cannot be changed.
	// +optional
	NodeCIDRMaskSizeIPv6 *int32 `json:"nodeCIDRMaskSizeIPv6,omitempty" protobuf:"varint,6,opt,name=nodeCIDRMaskSizeIPv6"`
}

// HorizontalPodAutoscalerConfig configures the controller for HorizontalPodAutoscalers.
type HorizontalPodAutoscalerConfig struct {
	// CPUInitializationPeriod is how long CPU samples of a new pod may be skipped. "5m" if unset.
	// +optional
	CPUInitializationPeriod *metav1.Duration `json:"cpuInitializationPeriod,omitempty" protobuf:"bytes,1,opt,name=cpuInitializationPeriod"`
	// DownscaleStabilization is how long the controller looks back before it scales down. "5m" if unset.
	// +optional
	DownscaleStabilization *metav1.Duration `json:"downscaleStabilization,omitempty" protobuf:"bytes,3,opt,name=downscaleStabilization"`
	// InitialReadinessDelay is how long a change of readiness counts as the first start of a pod. "30s" if unset.
	// +optional
	InitialReadinessDelay *metav1.Duration `json:"initialReadinessDelay,omitempty" protobuf:"bytes,4,opt,name=initialReadinessDelay"`
	// SyncPeriod is how often the controller checks. "30s" if unset.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty" protobuf:"bytes,5,opt,name=syncPeriod"`
	// Tolerance is how far the metric may be off before something is done. 0.1 if unset.
	// +optional
	Tolerance *float64 `json:"tolerance,omitempty" protobuf:"fixed64,6,opt,name=tolerance"`
}

// KubeSchedulerConfig configures the kube-scheduler.
type KubeSchedulerConfig struct {
	// KubernetesConfig is what all Kubernetes components have in common.
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// KubeMaxPDVols is how many volumes a node may have.
	//
	// Deprecated: Not used any more.
	// +optional
	KubeMaxPDVols *string `json:"kubeMaxPDVols,omitempty" protobuf:"bytes,2,opt,name=kubeMaxPDVols"`
	// Profile is how pods are spread over nodes. "balanced" is the default.
	// +optional
	Profile *SchedulingProfile `json:"profile,omitempty" protobuf:"bytes,3,opt,name=profile,casttype=SchedulingProfile"`
}

// SchedulingProfile is how pods are spread over nodes.
type SchedulingProfile string

const (
	// SchedulingProfileBalanced spreads pods evenly.
	SchedulingProfileBalanced SchedulingProfile = "balanced"
	// SchedulingProfileBinPacking fills nodes up, so that fewer are needed.
	SchedulingProfileBinPacking SchedulingProfile = "bin-packing"
)

// KubeProxyConfig configures the kube-proxy.
type KubeProxyConfig struct {
	// KubernetesConfig is what all Kubernetes components have in common.
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// Mode is how it works. "IPTables" is the default.
	// +optional
	Mode *ProxyMode `json:"mode,omitempty" protobuf:"bytes,2,opt,name=mode,casttype=ProxyMode"`
	// Enabled says whether there is a kube-proxy. True is the default; false needs a network extension that stands
	// in.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"varint,3,opt,name=enabled"`
}

// ProxyMode is how kube-proxy works.
type ProxyMode string

const (
	// ProxyModeIPTables uses iptables rules.
	ProxyModeIPTables ProxyMode = "IPTables"
	// ProxyModeNFTables uses nftables rules.
	ProxyModeNFTables ProxyMode = "NFTables"
	// ProxyModeIPVS uses IP virtual servers.
	ProxyModeIPVS ProxyMode = "IPVS"
)

// ETCD configures the etcd clusters of the control plane.
type ETCD struct {
	// Main is the etcd for everything but events.
	// +optional
	Main *ETCDConfig `json:"main,omitempty" protobuf:"bytes,1,opt,name=main"`
	// Events is the etcd for events.
	// +optional
	Events *ETCDConfig `json:"events,omitempty" protobuf:"bytes,2,opt,name=events"`
}

// ETCDConfig configures one etcd cluster.
type ETCDConfig struct {
	// Autoscaling bounds its vertical scaling.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty" protobuf:"bytes,1,opt,name=autoscaling"`
}

// ControlPlaneAutoscaling bounds the vertical scaling of a component of the control plane.
type ControlPlaneAutoscaling struct {
	// MinAllowed is what the component gets at least: cpu and memory.
	MinAllowed corev1.ResourceList `json:"minAllowed" protobuf:"bytes,1,rep,name=minAllowed"`
}
