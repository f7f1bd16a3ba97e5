package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machines,singular=machine,scope=Namespaced,shortName=mc
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.currentStatus.phase"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=".metadata.labels.node"
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=".spec.providerID",priority=1

// Machine is a machine of the machine-controller-manager that becomes a node.
type Machine struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired machine.
	// +optional
	Spec MachineSpec `json:"spec,omitempty"`

	// Status says how the machine is.
	// +optional
	Status MachineStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// MachineList is a list of Machine objects.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Machine `json:"items"`
}

// MachineSpec describes the desired machine.
type MachineSpec struct {
	// The fields of MachineConfiguration belong here too.
	MachineConfiguration `json:",inline"`

	// Class names the MachineClass that the machine is created from.
	// +optional
	Class ClassSpec `json:"class,omitempty"`

	// NodeTemplate holds what is put on the Node when the machine joined.
	// +optional
	NodeTemplate NodeTemplateSpec `json:"nodeTemplate,omitempty"`

	// ProviderID is the ID of the machine at the infrastructure. Set by the machine-controller-manager.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
}

// ClassSpec names a MachineClass.
type ClassSpec struct {
	// APIGroup is the API group of the class.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind is the kind of the class.
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name is the name of the class.
	// +optional
	Name string `json:"name,omitempty"`
}

// NodeTemplateSpec holds what is put on a Node.
type NodeTemplateSpec struct {
	// ObjectMeta holds the labels and annotations of the Node.
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ObjectMeta metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the taints of the Node, among others.
	// +optional
	Spec corev1.NodeSpec `json:"spec,omitempty"`
}

// MachineConfiguration holds settings for the lifecycle of a machine. What is unset follows the flags of the
// machine-controller-manager.
type MachineConfiguration struct {
	// CreationTimeout is how long a machine may take to join as a node before it counts as failed.
	// +optional
	CreationTimeout *metav1.Duration `json:"creationTimeout,omitempty"`

	// DisableHealthTimeout keeps a machine that stays unhealthy from being replaced.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`

	// DrainTimeout is how long draining may take before the machine is deleted by force.
	// +optional
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`

	// HealthTimeout is how long a machine may be unhealthy before it counts as failed.
	// +optional
	HealthTimeout *metav1.Duration `json:"healthTimeout,omitempty"`

	// InPlaceUpdateTimeout is how long an update in place may take before the machine counts as failed.
	// +optional
	InPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`

	// MachinePreserveTimeout is how long a machine is preserved for inspection.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`

	// MaxEvictRetries is how often evicting a pod is tried before the pod is deleted.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`

	// NodeConditions lists, separated by commas, the condition types of the Node that make the machine unhealthy when
	// True.
	// +optional
	NodeConditions *string `json:"nodeConditions,omitempty"`
}

// MachineStatus says how the machine is. The machine-controller-manager writes it.
type MachineStatus struct {
	// Addresses are the addresses of the machine at the infrastructure.
	// +optional
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`

	// Conditions are the conditions of the Node.
	// +optional
	Conditions []corev1.NodeCondition `json:"conditions,omitempty"`

	// CurrentStatus is the phase of the machine.
	// +optional
	CurrentStatus CurrentStatus `json:"currentStatus,omitempty"`

	// LastKnownState is what the provider's driver needs to keep.
	// +optional
	LastKnownState string `json:"lastKnownState,omitempty"`

	// LastOperation describes what was done with the machine last.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty"`
}

// LastOperation describes what was done with a machine last.
type LastOperation struct {
	// Description explains the operation for users.
	// +optional
	Description string `json:"description,omitempty"`

	// ErrorCode is the gRPC code of the error that the infrastructure returned.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`

	// LastUpdateTime is when the operation was written last.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`

	// State says how the operation went: Processing, Failed or Successful.
	// +optional
	State MachineState `json:"state,omitempty"`

	// Type is Create, Update, HealthCheck, DrainNode, Delete or InPlaceUpdate.
	// +optional
	Type MachineOperationType `json:"type,omitempty"`
}

// CurrentStatus is the phase of a machine.
type CurrentStatus struct {
	// LastUpdateTime is when the phase changed last.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`

	// Phase is the phase.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// PreserveExpiryTime is until when the machine is preserved for inspection.
	// +optional
	PreserveExpiryTime *metav1.Time `json:"preserveExpiryTime,omitempty"`

	// TimeoutActive says that a time-out for the phase is running.
	// +optional
	TimeoutActive bool `json:"timeoutActive,omitempty"`
}

// MachineSummary is a machine that failed.
type MachineSummary struct {
	// LastOperation describes what was done with the machine last.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty"`

	// Name is the name of the machine.
	// +optional
	Name string `json:"name,omitempty"`

	// OwnerRef is the name of the MachineSet the machine belongs to.
	// +optional
	OwnerRef string `json:"ownerRef,omitempty"`

	// ProviderID is the ID of the machine at the infrastructure.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
}

// MachinePhase says how a machine is.
type MachinePhase string

const (
	// MachinePending machines are created, but did not join as a node yet.
	MachinePending MachinePhase = "Pending"
	// MachineAvailable machines exist at the infrastructure.
	MachineAvailable MachinePhase = "Available"
	// MachineRunning machines are healthy nodes.
	MachineRunning MachinePhase = "Running"
	// MachineInPlaceUpdating machines are being updated in place.
	MachineInPlaceUpdating MachinePhase = "InPlaceUpdating"
	// MachineInPlaceUpdateSuccessful machines were updated in place.
	MachineInPlaceUpdateSuccessful MachinePhase = "InPlaceUpdateSuccessful"
	// MachineInPlaceUpdateFailed machines could not be updated in place.
	MachineInPlaceUpdateFailed MachinePhase = "InPlaceUpdateFailed"
	// MachineTerminating machines are being deleted.
	MachineTerminating MachinePhase = "Terminating"
	// MachineUnknown machines do not report, or report problems.
	MachineUnknown MachinePhase = "Unknown"
	// MachineFailed machines are to be replaced.
	MachineFailed MachinePhase = "Failed"
	// MachineCrashLoopBackOff machines could not be created. It is tried again.
	MachineCrashLoopBackOff MachinePhase = "CrashLoopBackOff"
)

// MachineState says how an operation went.
type MachineState string

const (
	// MachineStateProcessing operations are under way.
	MachineStateProcessing MachineState = "Processing"
	// MachineStateFailed operations failed.
	MachineStateFailed MachineState = "Failed"
	// MachineStateSuccessful operations are done.
	MachineStateSuccessful MachineState = "Successful"
)

// MachineOperationType is what is done with a machine.
type MachineOperationType string

const (
	// MachineOperationCreate creates the machine.
	MachineOperationCreate MachineOperationType = "Create"
	// MachineOperationUpdate brings the node to its template.
	MachineOperationUpdate MachineOperationType = "Update"
	// MachineOperationInPlaceUpdate updates the machine in place.
	MachineOperationInPlaceUpdate MachineOperationType = "InPlaceUpdate"
	// MachineOperationDrainNode drains the node.
	MachineOperationDrainNode MachineOperationType = "DrainNode"
	// MachineOperationHealthCheck checks the health of the node.
	MachineOperationHealthCheck MachineOperationType = "HealthCheck"
	// MachineOperationDelete deletes the machine.
	MachineOperationDelete MachineOperationType = "Delete"
)
