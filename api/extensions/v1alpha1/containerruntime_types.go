package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRuntimeResource is the kind of the ContainerRuntime resource, as it is written in a ControllerRegistration.
const ContainerRuntimeResource = "ContainerRuntime"

// ContainerDRuntimeContainersBinFolder is the directory on the node into which extensions put the binaries of their runtimes.
const ContainerDRuntimeContainersBinFolder = "/var/bin/containerruntimes"

// ContainerRuntimeNameWorkerLabel is the format of the node label that says that an additional container runtime is there. It takes
// the type of the runtime, such as gvisor.
const ContainerRuntimeNameWorkerLabel = "containerruntime.worker.gardener.cloud/%s"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=containerruntimes,singular=containerruntime,scope=Namespaced,shortName=cr
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// ContainerRuntime makes an extension install an additional container runtime, such as gVisor, on the nodes of one
// worker pool.
type ContainerRuntime struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired runtime on which nodes.
	Spec ContainerRuntimeSpec `json:"spec"`

	// Status says what the extension did about it.
	// +optional
	Status ContainerRuntimeStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ContainerRuntimeList is a list of ContainerRuntime objects.
type ContainerRuntimeList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []ContainerRuntime `json:"items"`
}

// ContainerRuntimeSpec describes the desired runtime on which nodes.
type ContainerRuntimeSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// BinaryPath is the directory on the node that the binaries of the runtime belong into. containerd finds them there.
	BinaryPath string `json:"binaryPath"`

	// WorkerPool says which nodes get the runtime.
	WorkerPool ContainerRuntimeWorkerPool `json:"workerPool"`
}

// ContainerRuntimeWorkerPool selects the nodes of a worker pool.
type ContainerRuntimeWorkerPool struct {
	// Name is the name of the worker pool in the Shoot. Immutable.
	Name string `json:"name"`

	// Selector matches the labels of the pool's nodes.
	Selector metav1.LabelSelector `json:"selector"`
}

// ContainerRuntimeStatus says what the extension did about the container runtime.
type ContainerRuntimeStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`
}
