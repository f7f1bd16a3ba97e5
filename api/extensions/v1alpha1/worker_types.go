package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// WorkerResource is the kind of the Worker resource, as it is written in a ControllerRegistration.
const WorkerResource = "Worker"

const (
	// ScaleDownUtilizationThresholdAnnotation sets ClusterAutoscalerOptions.ScaleDownUtilizationThreshold on a MachineDeployment.
	ScaleDownUtilizationThresholdAnnotation = "autoscaler.gardener.cloud/scale-down-utilization-threshold"
	// ScaleDownGPUUtilizationThresholdAnnotation sets ClusterAutoscalerOptions.ScaleDownGPUUtilizationThreshold on a
	// MachineDeployment.
	ScaleDownGPUUtilizationThresholdAnnotation = "autoscaler.gardener.cloud/scale-down-gpu-utilization-threshold"
	// ScaleDownUnneededTimeAnnotation sets ClusterAutoscalerOptions.ScaleDownUnneededTime on a MachineDeployment.
	ScaleDownUnneededTimeAnnotation = "autoscaler.gardener.cloud/scale-down-unneeded-time"
	// ScaleDownUnreadyTimeAnnotation sets ClusterAutoscalerOptions.ScaleDownUnreadyTime on a MachineDeployment.
	ScaleDownUnreadyTimeAnnotation = "autoscaler.gardener.cloud/scale-down-unready-time"
	// MaxNodeProvisionTimeAnnotation sets ClusterAutoscalerOptions.MaxNodeProvisionTime on a MachineDeployment.
	MaxNodeProvisionTimeAnnotation = "autoscaler.gardener.cloud/max-node-provision-time"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workers,singular=worker,scope=Namespaced
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=".spec.region"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// Worker describes the machines of a shoot, for which an extension creates machine classes and machine deployments for every pool.
type Worker struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired machines.
	Spec WorkerSpec `json:"spec"`

	// Status says which machine deployments there are.
	// +optional
	Status WorkerStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// WorkerList is a list of Worker objects.
type WorkerList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Worker `json:"items"`
}

// WorkerSpec describes the desired machines.
type WorkerSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// InfrastructureProviderStatus is a copy of status.providerStatus of the Infrastructure, such as the IDs of networks.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus,omitempty"`

	// Region is the region of the shoot. Immutable.
	Region string `json:"region"`

	// SecretRef names the Secret with the credentials for the infrastructure.
	SecretRef corev1.SecretReference `json:"secretRef"`

	// SSHPublicKey is the public SSH key that machines shall accept, in the authorized_keys format. In JSON it is base64
	// encoded. Unset when SSH access to nodes is disabled.
	// +optional
	SSHPublicKey []byte `json:"sshPublicKey,omitempty"`

	// Pools lists the worker pools, each with its own name.
	// +patchMergeKey=name
	// +patchStrategy=merge
	Pools []WorkerPool `json:"pools" patchStrategy:"merge" patchMergeKey:"name"`
}

// WorkerPool describes a group of machines that are alike. The gardenlet fills it from spec.provider.workers of the
// Shoot.
type WorkerPool struct {
	// MachineType is the type of the machines, as listed in the CloudProfile.
	MachineType string `json:"machineType"`

	// Maximum is the highest number of machines over all zones.
	Maximum int32 `json:"maximum"`

	// MaxSurge is how many machines, as a number or a percentage, may exist beyond the desired number during a rolling
	// update.
	MaxSurge intstr.IntOrString `json:"maxSurge"`

	// MaxUnavailable is how many machines, as a number or a percentage, may be missing during a rolling update.
	MaxUnavailable intstr.IntOrString `json:"maxUnavailable"`

	// Annotations are put on the nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels are put on the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Taints are put on the nodes.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// MachineImage is the image that machines boot from.
	// +optional
	MachineImage *MachineImage `json:"machineImage,omitempty"`

	// Minimum is the lowest number of machines over all zones.
	Minimum int32 `json:"minimum"`

	// Name is the name of the pool, unique within the Worker.
	Name string `json:"name"`

	// NodeAgentSecretName is the name of the Secret with the operating system config of the pool. It carries a checksum of
	// what needs new machines; the gardenlet sets it, and machines are replaced when it changes.
	// +optional
	NodeAgentSecretName *string `json:"nodeAgentSecretName,omitempty"`

	// ProviderConfig is configuration of the pool that only the responsible extension understands.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`

	// UserDataSecretRef names the Secret, and the key in it, with the script that machines run when they boot first. The
	// gardenlet replaces the Secret without replacing machines.
	UserDataSecretRef corev1.SecretKeySelector `json:"userDataSecretRef"`

	// Volume is the root disk of the machines. Unset, the machine type brings one of its own.
	// +optional
	Volume *Volume `json:"volume,omitempty"`

	// DataVolumes are further disks of the machines.
	// +optional
	DataVolumes []DataVolume `json:"dataVolumes,omitempty"`

	// KubeletDataVolumeName is the name of the data volume on which the kubelet and the container runtime keep their data.
	// Unset means the root disk.
	// +optional
	KubeletDataVolumeName *string `json:"kubeletDataVolumeName,omitempty"`

	// Zones are the availability zones that machines are spread over.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// MachineControllerManager are settings with which the machine-controller-manager treats the machines of the pool.
	// +optional
	MachineControllerManager *corev1beta1.MachineControllerManagerSettings `json:"machineControllerManager,omitempty"`

	// KubernetesVersion is the Kubernetes version of the kubelet, if it is not that of the control plane.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`

	// KubeletConfig is the kubelet configuration of the pool, from which the extension calculates what pods can use.
	// +optional
	KubeletConfig *corev1beta1.KubeletConfig `json:"kubeletConfig,omitempty"`

	// NodeTemplate describes for the cluster-autoscaler what a node of the pool would offer before there is one.
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`

	// Architecture is the CPU architecture of the machines, amd64 or arm64. Unset means amd64.
	// +optional
	Architecture *string `json:"architecture,omitempty"`

	// ClusterAutoscaler are settings of the cluster-autoscaler for the pool.
	// +optional
	ClusterAutoscaler *ClusterAutoscalerOptions `json:"clusterAutoscaler,omitempty"`

	// Priority is the priority of the pool for the "priority" expander of the cluster-autoscaler. A higher number is
	// preferred. Unset means 0.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// UpdateStrategy says how machines get to a new version: replaced, updated in place by the machine-controller-manager,
	// or updated in place when the user says so. Unset means AutoRollingUpdate.
	// +optional
	UpdateStrategy *corev1beta1.MachineUpdateStrategy `json:"updateStrategy,omitempty"`
}

// ClusterAutoscalerOptions are settings of the cluster-autoscaler for a pool. What is unset follows the setting for
// the whole shoot.
type ClusterAutoscalerOptions struct {
	// ScaleDownUtilizationThreshold is the share of a node's requested CPU or memory, as a decimal number between 0 and 1,
	// below which the node may be removed.
	// +optional
	ScaleDownUtilizationThreshold *string `json:"scaleDownUtilizationThreshold,omitempty"`

	// ScaleDownGPUUtilizationThreshold is the same for the GPUs of a node.
	// +optional
	ScaleDownGPUUtilizationThreshold *string `json:"scaleDownGpuUtilizationThreshold,omitempty"`

	// ScaleDownUnneededTime is how long a node must have been unneeded before it is removed.
	// +optional
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`

	// ScaleDownUnreadyTime is how long an unready node must have been unneeded before it is removed.
	// +optional
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`

	// MaxNodeProvisionTime is how long the cluster-autoscaler waits for a new node before it gives up on it.
	// +optional
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
}

// NodeTemplate describes what a node of a pool offers.
type NodeTemplate struct {
	// Capacity is what the machine has, such as CPU, memory, GPUs and ephemeral storage.
	Capacity corev1.ResourceList `json:"capacity"`

	// VirtualCapacity is what nodes offer beyond what the machine has. A change does not replace machines.
	// +optional
	VirtualCapacity corev1.ResourceList `json:"virtualCapacity,omitempty"`
}

// MachineImage names an image of the CloudProfile.
type MachineImage struct {
	// Name is the name of the image.
	Name string `json:"name"`

	// Version is its version.
	Version string `json:"version"`
}

// Volume describes the root disk of a machine.
type Volume struct {
	// Name makes the disk recognisable for the extension. Rarely needed.
	// +optional
	Name *string `json:"name,omitempty"`

	// Type is the volume type, as listed in the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty"`

	// Size is the capacity, a quantity such as 50Gi.
	Size string `json:"size"`

	// Encrypted says whether the disk is encrypted. Unset leaves it to the infrastructure.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// DataVolume describes a further disk of a machine.
type DataVolume struct {
	// Name is the name of the disk, unique within the pool.
	Name string `json:"name"`

	// Type is the volume type, as listed in the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty"`

	// Size is the capacity, a quantity such as 50Gi.
	Size string `json:"size"`

	// Encrypted says whether the disk is encrypted. Unset leaves it to the infrastructure.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// WorkerStatus says which machine deployments there are.
type WorkerStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`

	// MachineDeployments lists the machine deployments, usually one per pool and zone. The cluster-autoscaler is
	// configured from it.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	MachineDeployments []MachineDeployment `json:"machineDeployments,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// MachineDeploymentsLastUpdateTime is when machineDeployments was written last: at least once in each operation, also if nothing has changed. The
	// gardenlet waits for it before it deploys the cluster-autoscaler.
	// +optional
	MachineDeploymentsLastUpdateTime *metav1.Time `json:"machineDeploymentsLastUpdateTime,omitempty"`

	// InPlaceUpdates says how far in-place updates came.
	// +optional
	InPlaceUpdates *InPlaceUpdatesWorkerStatus `json:"inPlaceUpdates,omitempty"`
}

// MachineDeployment summarises a MachineDeployment of the machine-controller-manager.
type MachineDeployment struct {
	// Name is the name of the MachineDeployment.
	Name string `json:"name"`

	// Minimum is the lowest number of machines that the cluster-autoscaler may scale to.
	Minimum int32 `json:"minimum"`

	// Maximum is the highest number of machines that the cluster-autoscaler may scale to.
	Maximum int32 `json:"maximum"`

	// Priority is the priority of the deployment for the "priority" expander of the cluster-autoscaler.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// AutoPreserveFailedMachineMax is how many failed machines of the deployment are kept for inspection instead of being
	// replaced.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// InPlaceUpdatesWorkerStatus says how far in-place updates came.
type InPlaceUpdatesWorkerStatus struct {
	// WorkerPoolToHashMap maps the name of a pool to the hash of the configuration that its machines were updated to last.
	// A pool whose machines are being updated is missing.
	// The extension writes it; the gardenlet compares it to see which pools are still to be updated.
	// +optional
	WorkerPoolToHashMap map[string]string `json:"workerPoolToHashMap,omitempty"`
}
