package v1beta1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubeletConfig configures kubelets.
type KubeletConfig struct {
	// KubernetesConfig is what all Kubernetes components have in common.
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// CPUCFSQuota enforces CPU limits of containers. True if unset.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty" protobuf:"varint,2,opt,name=cpuCFSQuota"`
	// CPUManagerPolicy says whether containers can have CPUs for themselves: "none" or "static". "none" if unset.
	// +optional
	CPUManagerPolicy *string `json:"cpuManagerPolicy,omitempty" protobuf:"bytes,3,opt,name=cpuManagerPolicy"`
	// EvictionHard are the limits at which pods are evicted at once.
	// +optional
	EvictionHard *KubeletConfigEviction `json:"evictionHard,omitempty" protobuf:"bytes,4,opt,name=evictionHard"`
	// EvictionMaxPodGracePeriod is how long pods get to end at a soft limit, in seconds. 90 if unset.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty" protobuf:"varint,5,opt,name=evictionMaxPodGracePeriod"`
	// EvictionMinimumReclaim is how much is freed at least when a limit was reached.
	// +optional
	EvictionMinimumReclaim *KubeletConfigEvictionMinimumReclaim `json:"evictionMinimumReclaim,omitempty" protobuf:"bytes,6,opt,name=evictionMinimumReclaim"`
	// EvictionPressureTransitionPeriod is how long a node keeps reporting pressure after it is gone. "4m" if unset.
	// +optional
	EvictionPressureTransitionPeriod *metav1.Duration `json:"evictionPressureTransitionPeriod,omitempty" protobuf:"bytes,7,opt,name=evictionPressureTransitionPeriod"`
	// EvictionSoft are the limits at which pods are evicted after a grace period.
	// +optional
	EvictionSoft *KubeletConfigEviction `json:"evictionSoft,omitempty" protobuf:"bytes,8,opt,name=evictionSoft"`
	// EvictionSoftGracePeriod is how long the soft limits must be exceeded.
	// +optional
	EvictionSoftGracePeriod *KubeletConfigEvictionSoftGracePeriod `json:"evictionSoftGracePeriod,omitempty" protobuf:"bytes,9,opt,name=evictionSoftGracePeriod"`
	// MaxPods is how many pods a node can have. 110 if unset. It bounds the node's pod range.
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty" protobuf:"varint,10,opt,name=maxPods"`
	// PodPidsLimit is how many processes a pod can have; at least 100.
	// +optional
	PodPidsLimit *int64 `json:"podPidsLimit,omitempty" protobuf:"varint,11,opt,name=podPidsLimit"`
	// FailSwapOn makes the kubelet refuse to run with swap space. True is the default.
	// +optional
	FailSwapOn *bool `json:"failSwapOn,omitempty" protobuf:"varint,13,opt,name=failSwapOn"`
	// KubeReserved is what is kept for Kubernetes and the operating system.
	// +optional
	KubeReserved *KubeletConfigReserved `json:"kubeReserved,omitempty" protobuf:"bytes,14,opt,name=kubeReserved"`
	// ImageGCHighThresholdPercent is how full the disk must be for unused images to be removed. 50 is the default.
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty" protobuf:"varint,16,opt,name=imageGCHighThresholdPercent"`
	// ImageGCLowThresholdPercent is down to what fill level unused images are removed. 40 is the default; below the
	// high threshold.
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty" protobuf:"varint,17,opt,name=imageGCLowThresholdPercent"`
	// SerializeImagePulls pulls one image at a time. True is the default, unless maxParallelImagePulls is above 1.
	// +optional
	SerializeImagePulls *bool `json:"serializeImagePulls,omitempty" protobuf:"varint,18,opt,name=serializeImagePulls"`
	// RegistryPullQPS is how many pulls per second are allowed. 0 stands for no limit; 5 if unset.
	// +optional
	RegistryPullQPS *int32 `json:"registryPullQPS,omitempty" protobuf:"varint,19,opt,name=registryPullQPS"`
	// RegistryBurst is how many pulls may happen at once. 10 if unset.
	// +optional
	RegistryBurst *int32 `json:"registryBurst,omitempty" protobuf:"varint,20,opt,name=registryBurst"`
	// SeccompDefault makes RuntimeDefault the seccomp profile of all containers.
	// +optional
	SeccompDefault *bool `json:"seccompDefault,omitempty" protobuf:"varint,21,opt,name=seccompDefault"`
	// ContainerLogMaxSize is how big a container's log file becomes before it is rotated. "100Mi" if unset.
	// +optional
	ContainerLogMaxSize *resource.Quantity `json:"containerLogMaxSize,omitempty" protobuf:"bytes,22,opt,name=containerLogMaxSize"`
	// ContainerLogMaxFiles is how many log files a container can have; at least 2. 5 if unset.
	// +optional
	ContainerLogMaxFiles *int32 `json:"containerLogMaxFiles,omitempty" protobuf:"varint,23,opt,name=containerLogMaxFiles"`
	// ProtectKernelDefaults makes the kubelet refuse to run if kernel settings differ from its defaults. True if
	// unset.
	// +optional
	ProtectKernelDefaults *bool `json:"protectKernelDefaults,omitempty" protobuf:"varint,24,opt,name=protectKernelDefaults"`
	// StreamingConnectionIdleTimeout is how long a streaming connection may be idle, between "30s" and "4h". "5m" if
	// unset.
	// +optional
	StreamingConnectionIdleTimeout *metav1.Duration `json:"streamingConnectionIdleTimeout,omitempty" protobuf:"bytes,25,opt,name=streamingConnectionIdleTimeout"`
	// MemorySwap says how pods use swap space. Needs failSwapOn: false and the feature gate NodeSwap.
	// +optional
	MemorySwap *MemorySwapConfiguration `json:"memorySwap,omitempty" protobuf:"bytes,26,opt,name=memorySwap"`
	// MaxParallelImagePulls is how many images are pulled at once. 1 if unset; above 1 it needs serializeImagePulls:
	// false.
	// +optional
	MaxParallelImagePulls *int32 `json:"maxParallelImagePulls,omitempty" protobuf:"varint,27,opt,name=maxParallelImagePulls"`
	// ImageMinimumGCAge is how old an unused image must be to be removed. "2m" is the default.
	// +optional
	ImageMinimumGCAge *metav1.Duration `json:"imageMinimumGCAge,omitempty" protobuf:"bytes,28,opt,name=imageMinimumGCAge"`
	// ImageMaximumGCAge is how old an unused image may become. "0s", the default, stands for no limit.
	// +optional
	ImageMaximumGCAge *metav1.Duration `json:"imageMaximumGCAge,omitempty" protobuf:"bytes,29,opt,name=imageMaximumGCAge"`
	// SingleProcessOOMKill kills only the process that used too much memory, not all of its container.
	// +optional
	SingleProcessOOMKill *bool `json:"singleProcessOOMKill,omitempty" protobuf:"varint,30,opt,name=singleProcessOOMKill"`
	// ImagePullCredentialsVerificationPolicy says for which present images the kubelet checks that the pod may use
	// them.
	// +optional
	ImagePullCredentialsVerificationPolicy *ImagePullCredentialsVerificationPolicy `json:"imagePullCredentialsVerificationPolicy,omitempty" protobuf:"bytes,31,opt,name=imagePullCredentialsVerificationPolicy,casttype=ImagePullCredentialsVerificationPolicy"`
	// PreloadedImagesVerificationAllowlist are images that need no check under NeverVerifyAllowlistedImages.
	// +optional
	PreloadedImagesVerificationAllowlist []string `json:"preloadedImagesVerificationAllowlist,omitempty" protobuf:"bytes,32,rep,name=preloadedImagesVerificationAllowlist"`
}

// ImagePullCredentialsVerificationPolicy says for which present images a kubelet checks that the pod may use them.
type ImagePullCredentialsVerificationPolicy string

const (
	// NeverVerify checks none.
	NeverVerify ImagePullCredentialsVerificationPolicy = "NeverVerify"
	// NeverVerifyPreloadedImages checks all but those that were there before the kubelet started.
	NeverVerifyPreloadedImages ImagePullCredentialsVerificationPolicy = "NeverVerifyPreloadedImages"
	// NeverVerifyAllowlistedImages checks all but those in a list.
	NeverVerifyAllowlistedImages ImagePullCredentialsVerificationPolicy = "NeverVerifyAllowlistedImages"
	// AlwaysVerify checks all.
	AlwaysVerify ImagePullCredentialsVerificationPolicy = "AlwaysVerify"
)

// KubeletConfigEviction are limits at which pods are evicted, each a quantity or a percentage.
type KubeletConfigEviction struct {
	// MemoryAvailable is for free memory. "100Mi" (hard) or "200Mi" (soft) if unset.
	// +optional
	MemoryAvailable *string `json:"memoryAvailable,omitempty" protobuf:"bytes,1,opt,name=memoryAvailable"`
	// ImageFSAvailable is for free space in the file system of images. "5%" (hard) or "10%" (soft) if unset.
	// +optional
	ImageFSAvailable *string `json:"imageFSAvailable,omitempty" protobuf:"bytes,2,opt,name=imageFSAvailable"`
	// ImageFSInodesFree is for free inodes in the file system of images. "5%" (hard) or "10%" (soft) if unset.
	// +optional
	ImageFSInodesFree *string `json:"imageFSInodesFree,omitempty" protobuf:"bytes,3,opt,name=imageFSInodesFree"`
	// NodeFSAvailable is for free space in the root file system. "5%" (hard) or "10%" (soft) if unset.
	// +optional
	NodeFSAvailable *string `json:"nodeFSAvailable,omitempty" protobuf:"bytes,4,opt,name=nodeFSAvailable"`
	// NodeFSInodesFree is for free inodes in the root file system. "5%" (hard) or "10%" (soft) if unset.
	// +optional
	NodeFSInodesFree *string `json:"nodeFSInodesFree,omitempty" protobuf:"bytes,5,opt,name=nodeFSInodesFree"`
}

// KubeletConfigEvictionMinimumReclaim is how much is freed at least when a limit was reached. "0Mi" if unset.
type KubeletConfigEvictionMinimumReclaim struct {
	// MemoryAvailable is for free memory.
	// +optional
	MemoryAvailable *resource.Quantity `json:"memoryAvailable,omitempty" protobuf:"bytes,1,opt,name=memoryAvailable"`
	// ImageFSAvailable is for free space in the file system of images.
	// +optional
	ImageFSAvailable *resource.Quantity `json:"imageFSAvailable,omitempty" protobuf:"bytes,2,opt,name=imageFSAvailable"`
	// ImageFSInodesFree is for free inodes in the file system of images.
	// +optional
	ImageFSInodesFree *resource.Quantity `json:"imageFSInodesFree,omitempty" protobuf:"bytes,3,opt,name=imageFSInodesFree"`
	// NodeFSAvailable is for free space in the root file system.
	// +optional
	NodeFSAvailable *resource.Quantity `json:"nodeFSAvailable,omitempty" protobuf:"bytes,4,opt,name=nodeFSAvailable"`
	// NodeFSInodesFree is for free inodes in the root file system.
	// +optional
	NodeFSInodesFree *resource.Quantity `json:"nodeFSInodesFree,omitempty" protobuf:"bytes,5,opt,name=nodeFSInodesFree"`
}

// KubeletConfigEvictionSoftGracePeriod is how long soft limits must be exceeded. "1m30s" if unset.
type KubeletConfigEvictionSoftGracePeriod struct {
	// MemoryAvailable is for free memory.
	// +optional
	MemoryAvailable *metav1.Duration `json:"memoryAvailable,omitempty" protobuf:"bytes,1,opt,name=memoryAvailable"`
	// ImageFSAvailable is for free space in the file system of images.
	// +optional
	ImageFSAvailable *metav1.Duration `json:"imageFSAvailable,omitempty" protobuf:"bytes,2,opt,name=imageFSAvailable"`
	// ImageFSInodesFree is for free inodes in the file system of images.
	// +optional
	ImageFSInodesFree *metav1.Duration `json:"imageFSInodesFree,omitempty" protobuf:"bytes,3,opt,name=imageFSInodesFree"`
	// NodeFSAvailable is for free space in the root file system.
	// +optional
	NodeFSAvailable *metav1.Duration `json:"nodeFSAvailable,omitempty" protobuf:"bytes,4,opt,name=nodeFSAvailable"`
	// NodeFSInodesFree is for free inodes in the root file system.
	// +optional
	NodeFSInodesFree *metav1.Duration `json:"nodeFSInodesFree,omitempty" protobuf:"bytes,5,opt,name=nodeFSInodesFree"`
}

// KubeletConfigReserved is what is kept for Kubernetes and the operating system.
type KubeletConfigReserved struct {
	// CPU is the CPU time. "80m" if unset.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty" protobuf:"bytes,1,opt,name=cpu"`
	// Memory is the memory. "1Gi" if unset.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty" protobuf:"bytes,2,opt,name=memory"`
	// EphemeralStorage is the disk space.
	// +optional
	EphemeralStorage *resource.Quantity `json:"ephemeralStorage,omitempty" protobuf:"bytes,3,opt,name=ephemeralStorage"`
	// PID is the number of process IDs. "20k" if unset.
	// +optional
	PID *resource.Quantity `json:"pid,omitempty" protobuf:"bytes,4,opt,name=pid"`
}

// What kubelets do with images where nothing else is said.
const (
	// DefaultImageGCHighThresholdPercent is how full the disk must be for unused images to be removed.
	DefaultImageGCHighThresholdPercent int32 = 50
	// DefaultImageGCLowThresholdPercent is down to what fill level unused images are removed.
	DefaultImageGCLowThresholdPercent int32 = 40
	// DefaultImageMinimumGCAge is how long an image must have been unused to be removed.
	DefaultImageMinimumGCAge = 2 * time.Minute
)

// SwapBehavior says how pods use swap space.
type SwapBehavior string

const (
	// NoSwap keeps pods from using swap space.
	NoSwap SwapBehavior = "NoSwap"
	// LimitedSwap lets burstable pods use a share of the swap space that fits their memory request.
	LimitedSwap SwapBehavior = "LimitedSwap"
)

// MemorySwapConfiguration says how pods use swap space.
type MemorySwapConfiguration struct {
	// SwapBehavior is how they do. "LimitedSwap" is the default where swap space can be used.
	// +optional
	SwapBehavior *SwapBehavior `json:"swapBehavior,omitempty" protobuf:"bytes,1,opt,name=swapBehavior,casttype=SwapBehavior"`
}
