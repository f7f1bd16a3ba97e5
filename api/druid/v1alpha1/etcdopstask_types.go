package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcdopstasks,singular=etcdopstask,scope=Namespaced,shortName=eot
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.state"
// +kubebuilder:printcolumn:name="Etcd",type=string,JSONPath=".spec.etcdName"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.lastOperation.type",priority=1
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=".spec.ttlSecondsAfterFinished",priority=1

// EtcdOpsTask makes etcd-druid run one operation on an etcd cluster once, such as a snapshot. It deletes itself
// some time after.
type EtcdOpsTask struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is to be done.
	Spec EtcdOpsTaskSpec `json:"spec"`

	// Status says how it went.
	// +optional
	Status EtcdOpsTaskStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// EtcdOpsTaskList is a list of EtcdOpsTask objects.
type EtcdOpsTaskList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []EtcdOpsTask `json:"items"`
}

// EtcdOpsTaskSpec says what is to be done.
type EtcdOpsTaskSpec struct {
	// Config is the operation, exactly one of the fields. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="config is immutable"
	Config EtcdOpsTaskConfig `json:"config"`

	// EtcdName is the name of the Etcd in the same namespace. Needed by operations on an Etcd. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="etcdName is immutable"
	// +optional
	EtcdName *string `json:"etcdName,omitempty"`

	// TTLSecondsAfterFinished is after how many seconds a finished task is deleted. Immutable. Defaults to 3600.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=3600
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ttlSecondsAfterFinished is immutable"
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// EtcdOpsTaskConfig is the operation, exactly one of the fields.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type EtcdOpsTaskConfig struct {
	// OnDemandSnapshot makes a snapshot.
	// +optional
	OnDemandSnapshot *OnDemandSnapshotConfig `json:"onDemandSnapshot,omitempty"`
}

// OnDemandSnapshotConfig makes a snapshot.
// +kubebuilder:validation:XValidation:rule="!has(self.isFinal) || !self.isFinal || self.type == 'full'",message="only a full snapshot can be final"
type OnDemandSnapshotConfig struct {
	// IsFinal marks the snapshot as the last one before the etcd is stopped for good. Full snapshots only.
	// +optional
	IsFinal *bool `json:"isFinal,omitempty"`

	// TimeoutSecondsDelta is how many seconds a delta snapshot may take. Defaults to 60.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:default=60
	// +optional
	TimeoutSecondsDelta *int32 `json:"timeoutSecondsDelta,omitempty"`

	// TimeoutSecondsFull is how many seconds a full snapshot may take. Defaults to 900.
	// +kubebuilder:validation:Minimum=120
	// +kubebuilder:default=900
	// +optional
	TimeoutSecondsFull *int32 `json:"timeoutSecondsFull,omitempty"`

	// Type is full or delta.
	// +kubebuilder:validation:Enum=full;delta
	Type OnDemandSnapshotType `json:"type"`
}

// EtcdOpsTaskStatus says how it went. etcd-druid writes it.
type EtcdOpsTaskStatus struct {
	// LastErrors are the latest errors, ten at most.
	// +kubebuilder:validation:MaxItems=10
	// +optional
	LastErrors []LastError `json:"lastErrors,omitempty"`

	// LastOperation describes the phase that the task is in, or was in last.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`

	// LastTransitionTime is when state changed last.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// StartedAt is when the task was admitted.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// State is Pending, InProgress, Succeeded, Failed or Rejected.
	// +kubebuilder:validation:Enum=Pending;InProgress;Succeeded;Failed;Rejected
	// +optional
	State *TaskState `json:"state,omitempty"`
}

// OnDemandSnapshotType is a kind of snapshot.
type OnDemandSnapshotType string

const (
	// OnDemandSnapshotTypeFull snapshots hold the whole database.
	OnDemandSnapshotTypeFull OnDemandSnapshotType = "full"
	// OnDemandSnapshotTypeDelta snapshots hold the changes since the last snapshot.
	OnDemandSnapshotTypeDelta OnDemandSnapshotType = "delta"
)

// TaskState says how far a task came.
type TaskState string

const (
	// TaskStatePending tasks were not started yet, or wait.
	TaskStatePending TaskState = "Pending"
	// TaskStateInProgress tasks are being done.
	TaskStateInProgress TaskState = "InProgress"
	// TaskStateSucceeded tasks are done.
	TaskStateSucceeded TaskState = "Succeeded"
	// TaskStateFailed tasks were given up.
	TaskStateFailed TaskState = "Failed"
	// TaskStateRejected tasks cannot be done in the state the etcd is in.
	TaskStateRejected TaskState = "Rejected"
)
