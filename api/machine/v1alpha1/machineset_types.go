package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinesets,singular=machineset,scope=Namespaced,shortName=mcs
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=".status.replicas"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyReplicas"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// MachineSet keeps a number of machines of the same template. A MachineDeployment creates it.
type MachineSet struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired number and kind of machines.
	// +optional
	Spec MachineSetSpec `json:"spec,omitempty"`

	// Status says how many there are.
	// +optional
	Status MachineSetStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// MachineSetList is a list of MachineSet objects.
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []MachineSet `json:"items"`
}

// MachineSetSpec is the desired number and kind of machines.
type MachineSetSpec struct {
	// AutoPreserveFailedMachineMax is how many failed machines are preserved for inspection instead of being replaced.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`

	// MachineClass names the MachineClass of the machines.
	// +optional
	MachineClass ClassSpec `json:"machineClass,omitempty"`

	// MinReadySeconds has no effect, as a machine is available as soon as it is ready. Extensions set it nevertheless.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Replicas is the desired number of machines.
	// +optional
	Replicas int32 `json:"replicas"`

	// Selector selects the machines of the set. It must match the labels of the template.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Template is what machines are created from.
	// +optional
	Template MachineTemplateSpec `json:"template,omitempty"`
}

// MachineSetStatus says how many machines there are. The machine-controller-manager writes it.
type MachineSetStatus struct {
	// AutoPreserveFailedMachineCount is how many failed machines are preserved at the moment.
	// +optional
	AutoPreserveFailedMachineCount *int32 `json:"autoPreserveFailedMachineCount,omitempty"`

	// AvailableReplicas is the number of machines that have been ready long enough.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// FailedMachines lists machines that failed.
	// +optional
	FailedMachines []MachineSummary `json:"failedMachines,omitempty"`

	// FullyLabeledReplicas is the number of machines that have the labels of the template.
	// +optional
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty"`

	// LastOperation describes what was done last.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty"`

	// Conditions are the conditions of the set.
	// +optional
	Conditions []MachineSetCondition `json:"machineSetCondition,omitempty"`

	// ObservedGeneration is the metadata.generation that was acted on last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// PreservedFailedReplicas is the number of failed machines that are preserved for inspection.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`

	// ReadyReplicas is the number of machines that are healthy nodes.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Replicas is the number of machines.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// MachineSetCondition is an observation about a MachineSet.
type MachineSetCondition struct {
	// LastTransitionTime is when status changed last.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// Message explains the condition for users.
	// +optional
	Message string `json:"message,omitempty"`

	// Reason explains the condition in one word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Status is True, False or Unknown.
	Status ConditionStatus `json:"status"`

	// Type names what is observed.
	Type MachineSetConditionType `json:"type"`
}

// ConditionStatus is the result of an observation.
type ConditionStatus string

const (
	// ConditionTrue says that what the type names is so.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse says that it is not so.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown says that it could not be found out.
	ConditionUnknown ConditionStatus = "Unknown"
)

// MachineSetConditionType names what is observed of a MachineSet.
type MachineSetConditionType string

const (
	// MachineSetReplicaFailure is True when machines could not be created or deleted.
	MachineSetReplicaFailure MachineSetConditionType = "ReplicaFailure"
	// MachineSetFrozen is True when the set creates no machines, because far more exist than desired.
	MachineSetFrozen MachineSetConditionType = "Frozen"
)
