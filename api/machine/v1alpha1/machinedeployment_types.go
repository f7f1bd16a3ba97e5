package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinedeployments,singular=machinedeployment,scope=Namespaced,shortName=mcd
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyReplicas"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=".status.updatedReplicas"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=".status.availableReplicas"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// MachineDeployment keeps a number of machines, and brings them to a new template step by step. The extension of the
// infrastructure writes it, the cluster-autoscaler scales it.
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired number and kind of machines.
	// +optional
	Spec MachineDeploymentSpec `json:"spec,omitempty"`

	// Status says how many there are.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// MachineDeploymentList is a list of MachineDeployment objects.
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []MachineDeployment `json:"items"`
}

// MachineDeploymentSpec is the desired number and kind of machines.
type MachineDeploymentSpec struct {
	// AutoPreserveFailedMachineMax is how many failed machines are preserved for inspection instead of being replaced.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`

	// MinReadySeconds has no effect, as a machine is available as soon as it is ready. Extensions set it nevertheless.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Paused stops updates of the machines.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ProgressDeadlineSeconds is after how many seconds without progress an update counts as stuck. Unset means never.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// Replicas is the desired number of machines. Written by the cluster-autoscaler too.
	// +optional
	Replicas int32 `json:"replicas"`

	// RevisionHistoryLimit is how many old MachineSets are kept to go back to.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// RollbackTo makes the deployment go back to an older template.
	// +optional
	RollbackTo *RollbackConfig `json:"rollbackTo,omitempty"`

	// Selector selects the machines of the deployment. It must match the labels of the template.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Strategy says how machines get to a new template.
	// +optional
	Strategy MachineDeploymentStrategy `json:"strategy,omitempty"`

	// Template is what machines are created from.
	Template MachineTemplateSpec `json:"template"`
}

// RollbackConfig names the template to go back to.
type RollbackConfig struct {
	// Revision is its revision. 0 means the one before.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// MachineDeploymentStrategy says how machines get to a new template.
type MachineDeploymentStrategy struct {
	// InPlaceUpdate configures updates in place. Used if type is InPlaceUpdate.
	// +optional
	InPlaceUpdate *InPlaceUpdateMachineDeployment `json:"inPlaceUpdate,omitempty"`

	// RollingUpdate configures rolling updates. Used if type is RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdateMachineDeployment `json:"rollingUpdate,omitempty"`

	// Type is Recreate, RollingUpdate or InPlaceUpdate. Unset means RollingUpdate.
	// +optional
	Type MachineDeploymentStrategyType `json:"type,omitempty"`
}

// UpdateConfiguration limits how many machines are touched at a time.
type UpdateConfiguration struct {
	// MaxSurge is how many machines, as a number or a percentage of replicas, may exist beyond replicas.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// MaxUnavailable is how many machines, as a number or a percentage of replicas, may be missing.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// RollingUpdateMachineDeployment configures rolling updates, in which machines are replaced.
type RollingUpdateMachineDeployment struct {
	// The fields of UpdateConfiguration belong here too.
	UpdateConfiguration `json:",inline"`
}

// InPlaceUpdateMachineDeployment configures updates in place, in which machines stay.
type InPlaceUpdateMachineDeployment struct {
	// The fields of UpdateConfiguration belong here too.
	UpdateConfiguration `json:",inline"`

	// OrchestrationType is Auto when the machine-controller-manager picks the machines that are next, Manual when a label
	// on the node does.
	// +optional
	OrchestrationType OrchestrationType `json:"orchestrationType,omitempty"`
}

// MachineTemplateSpec is what machines are created from.
type MachineTemplateSpec struct {
	// ObjectMeta holds the labels and annotations of the machines.
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ObjectMeta metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the spec of the machines.
	// +optional
	Spec MachineSpec `json:"spec,omitempty"`
}

// MachineDeploymentStatus says how many machines there are. The machine-controller-manager writes it.
type MachineDeploymentStatus struct {
	// AvailableReplicas is the number of machines that have been ready long enough.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// CollisionCount makes the names of new MachineSets unique. It counts the collisions so far.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// Conditions are the conditions of the deployment.
	// +optional
	Conditions []MachineDeploymentCondition `json:"conditions,omitempty"`

	// FailedMachines lists machines that failed.
	// +optional
	FailedMachines []MachineSummary `json:"failedMachines,omitempty"`

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

	// UnavailableReplicas is the number of machines that are missing or not available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// UpdatedReplicas is the number of machines that have the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
}

// MachineDeploymentCondition is an observation about a MachineDeployment.
type MachineDeploymentCondition struct {
	// LastTransitionTime is when status changed last.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// LastUpdateTime is when the condition was written last.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`

	// Message explains the condition for users.
	// +optional
	Message string `json:"message,omitempty"`

	// Reason explains the condition in one word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Status is True, False or Unknown.
	Status ConditionStatus `json:"status"`

	// Type names what is observed.
	Type MachineDeploymentConditionType `json:"type"`
}

// MachineDeploymentStrategyType says how machines get to a new template.
type MachineDeploymentStrategyType string

const (
	// RecreateMachineDeploymentStrategyType deletes all machines before it creates new ones.
	RecreateMachineDeploymentStrategyType MachineDeploymentStrategyType = "Recreate"
	// RollingUpdateMachineDeploymentStrategyType replaces machines a few at a time.
	RollingUpdateMachineDeploymentStrategyType MachineDeploymentStrategyType = "RollingUpdate"
	// InPlaceUpdateMachineDeploymentStrategyType updates machines without replacing them.
	InPlaceUpdateMachineDeploymentStrategyType MachineDeploymentStrategyType = "InPlaceUpdate"
)

// OrchestrationType says how the machines are chosen that are updated next.
type OrchestrationType string

const (
	// OrchestrationTypeAuto leaves it to the machine-controller-manager.
	OrchestrationTypeAuto OrchestrationType = "Auto"
	// OrchestrationTypeManual means that the user chooses, and labels the node.
	OrchestrationTypeManual OrchestrationType = "Manual"
)

// MachineDeploymentConditionType names what is observed of a MachineDeployment.
type MachineDeploymentConditionType string

const (
	// MachineDeploymentAvailable says whether as many machines are available as the strategy requests.
	MachineDeploymentAvailable MachineDeploymentConditionType = "Available"
	// MachineDeploymentProgressing says whether an update makes progress.
	MachineDeploymentProgressing MachineDeploymentConditionType = "Progressing"
	// MachineDeploymentReplicaFailure is True when machines could not be created or deleted.
	MachineDeploymentReplicaFailure MachineDeploymentConditionType = "ReplicaFailure"
	// MachineDeploymentFrozen is True when no machines are created, because far more exist than desired.
	MachineDeploymentFrozen MachineDeploymentConditionType = "Frozen"
)
