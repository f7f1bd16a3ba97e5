package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Provider is the infrastructure of a cluster and the workers on it.
type Provider struct {
	// Type is the provider type of the infrastructure. Cannot be changed.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// ControlPlaneConfig is passed to the provider extension for the control plane components that know the
	// infrastructure. Not for clusters without workers.
	// +optional
	ControlPlaneConfig *runtime.RawExtension `json:"controlPlaneConfig,omitempty" protobuf:"bytes,2,opt,name=controlPlaneConfig"`
	// InfrastructureConfig is passed to the provider extension for networks and the like. Not for clusters without
	// workers.
	// +optional
	InfrastructureConfig *runtime.RawExtension `json:"infrastructureConfig,omitempty" protobuf:"bytes,3,opt,name=infrastructureConfig"`
	// Workers are the worker pools. A cluster that was created without any stays so.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	Workers []Worker `json:"workers,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,rep,name=workers"`
	// WorkersSettings are settings of all worker pools. Not for clusters without workers.
	// +optional
	WorkersSettings *WorkersSettings `json:"workersSettings,omitempty" protobuf:"bytes,5,opt,name=workersSettings"`
}

// Worker is a worker pool: a group of equal machines.
type Worker struct {
	// Annotations are put on the nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,1,rep,name=annotations"`
	// CABundle is a CA bundle in PEM form that is installed on the nodes.
	// +optional
	CABundle *string `json:"caBundle,omitempty" protobuf:"bytes,2,opt,name=caBundle"`
	// CRI selects the container runtime. containerd is the default.
	// +optional
	CRI *CRI `json:"cri,omitempty" protobuf:"bytes,3,opt,name=cri"`
	// Kubernetes overrides the Kubernetes version and the kubelet configuration.
	// +optional
	Kubernetes *WorkerKubernetes `json:"kubernetes,omitempty" protobuf:"bytes,4,opt,name=kubernetes"`
	// Labels are put on the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,5,rep,name=labels"`
	// Name is the name of the pool: a DNS label of at most 15 characters, unique in the cluster.
	Name string `json:"name" protobuf:"bytes,6,opt,name=name"`
	// Machine is the machine type and image.
	Machine Machine `json:"machine" protobuf:"bytes,7,opt,name=machine"`
	// Maximum is how many machines the pool may have. At least 1, if it is not a pool without nodes.
	Maximum int32 `json:"maximum" protobuf:"varint,8,opt,name=maximum"`
	// Minimum is how many machines the pool has at least. At least as many as there are zones, unless it is 0.
	Minimum int32 `json:"minimum" protobuf:"varint,9,opt,name=minimum"`
	// MaxSurge is how many machines there may be more during an update, as number or percentage. 1 is the default; 0
	// for in-place updates.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty" protobuf:"bytes,10,opt,name=maxSurge"`
	// MaxUnavailable is how many machines there may be less during an update, as number or percentage. 0 is the
	// default; 1 for automatic in-place updates.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty" protobuf:"bytes,11,opt,name=maxUnavailable"`
	// ProviderConfig is passed to the provider extension for this pool.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,12,opt,name=providerConfig"`
	// Taints are put on the nodes.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty" protobuf:"bytes,13,rep,name=taints"`
	// Volume is the root disk.
	// +optional
	Volume *Volume `json:"volume,omitempty" protobuf:"bytes,14,opt,name=volume"`
	// DataVolumes are further disks.
	// +optional
	DataVolumes []DataVolume `json:"dataVolumes,omitempty" protobuf:"bytes,15,rep,name=dataVolumes"`
	// KubeletDataVolumeName is the data volume that holds the kubelet's directory.
	// +optional
	KubeletDataVolumeName *string `json:"kubeletDataVolumeName,omitempty" protobuf:"bytes,16,opt,name=kubeletDataVolumeName"`
	// Zones are the availability zones of the machines. One can be added, but not removed.
	// +optional
	Zones []string `json:"zones,omitempty" protobuf:"bytes,17,rep,name=zones"`
	// SystemComponents says whether system components may run on the nodes.
	// +optional
	SystemComponents *WorkerSystemComponents `json:"systemComponents,omitempty" protobuf:"bytes,18,opt,name=systemComponents"`
	// MachineControllerManager overrides settings of the machine-controller-manager.
	// +optional
	MachineControllerManager *MachineControllerManagerSettings `json:"machineControllerManager,omitempty" protobuf:"bytes,19,opt,name=machineControllerManager"`
	// Sysctls are kernel settings of the nodes.
	// +optional
	Sysctls map[string]string `json:"sysctls,omitempty" protobuf:"bytes,20,rep,name=sysctls"`
	// ClusterAutoscaler overrides settings of the cluster-autoscaler.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty" protobuf:"bytes,21,opt,name=clusterAutoscaler"`
	// Priority is the priority of the pool for the expander "priority". A larger number comes first.
	// +optional
	Priority *int32 `json:"priority,omitempty" protobuf:"varint,22,opt,name=priority"`
	// UpdateStrategy says how machines are brought to a new version. "AutoRollingUpdate" is the default.
	// +optional
	UpdateStrategy *MachineUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"bytes,23,opt,name=updateStrategy,casttype=MachineUpdateStrategy"`
	// ControlPlane makes the pool host the control plane of a self-hosted cluster. At most one pool has it.
	// +optional
	ControlPlane *WorkerControlPlane `json:"controlPlane,omitempty" protobuf:"bytes,24,opt,name=controlPlane"`
}

// MachineUpdateStrategy says how machines are brought to a new version.
type MachineUpdateStrategy string

const (
	// AutoRollingUpdate replaces machine by machine.
	AutoRollingUpdate MachineUpdateStrategy = "AutoRollingUpdate"
	// AutoInPlaceUpdate updates machine by machine without replacing them.
	AutoInPlaceUpdate MachineUpdateStrategy = "AutoInPlaceUpdate"
	// ManualInPlaceUpdate updates those machines that the user marks, without replacing them.
	ManualInPlaceUpdate MachineUpdateStrategy = "ManualInPlaceUpdate"
)

// WorkerControlPlane makes a pool host the control plane of a self-hosted cluster.
type WorkerControlPlane struct {
	// Backup is where the etcd backups are kept.
	// +optional
	Backup *Backup `json:"backup,omitempty" protobuf:"bytes,1,opt,name=backup"`
	// Exposure says how the API server is reached.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty" protobuf:"bytes,2,opt,name=exposure"`
}

// Exposure says how the API server of a self-hosted cluster is reached. At most one way is set.
type Exposure struct {
	// Extension lets an extension do it, such as by a load balancer.
	// +optional
	Extension *ExtensionExposure `json:"extension,omitempty" protobuf:"bytes,1,opt,name=extension"`
	// DNS does it by DNS records that point to the nodes.
	// +optional
	DNS *DNSExposure `json:"dns,omitempty" protobuf:"bytes,2,opt,name=dns"`
}

// ExtensionExposure lets an extension expose the API server.
type ExtensionExposure struct {
	// Type is the type of the extension. That of the infrastructure is the default.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,1,opt,name=type"`
	// ProviderConfig is passed to the extension.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
}

// DNSExposure exposes the API server by DNS records. It has no settings.
type DNSExposure struct{}

// WorkerKubernetes overrides Kubernetes settings for a worker pool.
type WorkerKubernetes struct {
	// Kubelet configures the kubelets of this pool, instead of that of the cluster.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty" protobuf:"bytes,1,opt,name=kubelet"`
	// Version is the Kubernetes version of this pool. At most as high as the cluster's and at most three minor
	// versions lower; that of the cluster is the default.
	// +optional
	Version *string `json:"version,omitempty" protobuf:"bytes,2,opt,name=version"`
}

// Machine is the machine type and image of a pool.
type Machine struct {
	// Type is a machine type of the CloudProfile.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Image is the machine image. The default image of the CloudProfile if unset.
	// +optional
	Image *ShootMachineImage `json:"image,omitempty" protobuf:"bytes,2,opt,name=image"`
	// Architecture is the CPU architecture. "amd64" if unset and the CloudProfile says nothing else.
	// +optional
	Architecture *string `json:"architecture,omitempty" protobuf:"bytes,3,opt,name=architecture"`
}

// ShootMachineImage is a machine image in a version.
type ShootMachineImage struct {
	// Name is the name of an image of the CloudProfile.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// ProviderConfig is passed to the extension for the operating system.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Version is the version of the image. The newest supported one if unset.
	// +optional
	Version *string `json:"version,omitempty" protobuf:"bytes,3,opt,name=version"`
}

// Volume is the root disk of machines.
type Volume struct {
	// Name is a name for it.
	// +optional
	Name *string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
	// Type is a volume type of the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
	// VolumeSize is its size, such as "50Gi".
	VolumeSize string `json:"size" protobuf:"bytes,3,opt,name=size"`
	// Encrypted says whether it is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty" protobuf:"varint,4,opt,name=encrypted"`
}

// DataVolume is a further disk of machines.
type DataVolume struct {
	// Name is its name, unique in the pool.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Type is a volume type of the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
	// VolumeSize is its size, such as "50Gi".
	VolumeSize string `json:"size" protobuf:"bytes,3,opt,name=size"`
	// Encrypted says whether it is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty" protobuf:"varint,4,opt,name=encrypted"`
}

// WorkerSystemComponents says whether system components may run in a pool.
type WorkerSystemComponents struct {
	// Allow is whether they may. True is the default; at least one pool must.
	Allow bool `json:"allow" protobuf:"varint,1,opt,name=allow"`
}

// MachineControllerManagerSettings override settings of the machine-controller-manager for a pool.
type MachineControllerManagerSettings struct {
	// MachineDrainTimeout is how long draining a node may take before its machine is removed anyway.
	// +optional
	MachineDrainTimeout *metav1.Duration `json:"machineDrainTimeout,omitempty" protobuf:"bytes,1,opt,name=machineDrainTimeout"`
	// MachineHealthTimeout is how long a machine may be unhealthy before it is replaced.
	// +optional
	MachineHealthTimeout *metav1.Duration `json:"machineHealthTimeout,omitempty" protobuf:"bytes,2,opt,name=machineHealthTimeout"`
	// MachineCreationTimeout is how long a machine may take to come up.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty" protobuf:"bytes,3,opt,name=machineCreationTimeout"`
	// MaxEvictRetries is how often the eviction of a pod is tried before it is deleted.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty" protobuf:"varint,4,opt,name=maxEvictRetries"`
	// NodeConditions are node conditions that count as unhealthy when they are True.
	// +optional
	NodeConditions []string `json:"nodeConditions,omitempty" protobuf:"bytes,5,rep,name=nodeConditions"`
	// InPlaceUpdateTimeout is how long an in-place update may take.
	// +optional
	InPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty" protobuf:"bytes,6,opt,name=inPlaceUpdateTimeout"`
	// DisableHealthTimeout keeps unhealthy machines. True is the default for in-place updates, false otherwise.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty" protobuf:"varint,7,opt,name=disableHealthTimeout"`
	// MachinePreserveTimeout is how long a machine that is kept for analysis is kept.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty" protobuf:"bytes,8,opt,name=machinePreserveTimeout"`
	// AutoPreserveFailedMachineMax is how many failed machines are kept for analysis at most.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty" protobuf:"varint,9,opt,name=autoPreserveFailedMachineMax"`
}

// ClusterAutoscalerOptions override settings of the cluster-autoscaler for a pool.
type ClusterAutoscalerOptions struct {
	// ScaleDownUtilizationThreshold is how little of a node must be requested for it to be superfluous.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty" protobuf:"fixed64,1,opt,name=scaleDownUtilizationThreshold"`
	// ScaleDownGpuUtilizationThreshold is the same for GPU nodes.
	// +optional
	ScaleDownGpuUtilizationThreshold *float64 `json:"scaleDownGpuUtilizationThreshold,omitempty" protobuf:"fixed64,2,opt,name=scaleDownGpuUtilizationThreshold"`
	// ScaleDownUnneededTime is how long a node must be superfluous before it is removed.
	// +optional
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty" protobuf:"bytes,3,opt,name=scaleDownUnneededTime"`
	// ScaleDownUnreadyTime is how long a node that is not ready must be superfluous before it is removed.
	// +optional
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty" protobuf:"bytes,4,opt,name=scaleDownUnreadyTime"`
	// MaxNodeProvisionTime is how long a node may take to join.
	// +optional
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty" protobuf:"bytes,5,opt,name=maxNodeProvisionTime"`
}

// WorkersSettings are settings of all worker pools.
type WorkersSettings struct {
	// SSHAccess says whether nodes can be reached by SSH.
	// +optional
	SSHAccess *SSHAccess `json:"sshAccess,omitempty" protobuf:"bytes,1,opt,name=sshAccess"`
}

// SSHAccess says whether nodes can be reached by SSH.
type SSHAccess struct {
	// Enabled runs the SSH daemon on the nodes. True is the default.
	Enabled bool `json:"enabled" protobuf:"varint,1,opt,name=enabled"`
}
