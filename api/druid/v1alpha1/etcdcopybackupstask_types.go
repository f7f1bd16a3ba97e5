package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcdcopybackupstasks,singular=etcdcopybackupstask,scope=Namespaced
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// EtcdCopyBackupsTask makes etcd-druid copy backups from one store to another once, as is needed when a control
// plane moves to another seed.
type EtcdCopyBackupsTask struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is copied.
	// +optional
	Spec EtcdCopyBackupsTaskSpec `json:"spec,omitempty"`

	// Status says how it went.
	// +optional
	Status EtcdCopyBackupsTaskStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// EtcdCopyBackupsTaskList is a list of EtcdCopyBackupsTask objects.
type EtcdCopyBackupsTaskList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []EtcdCopyBackupsTask `json:"items"`
}

// EtcdCopyBackupsTaskSpec says what is copied.
type EtcdCopyBackupsTaskSpec struct {
	// MaxBackupAge is the age in days up to which backups are copied. Unset means all of them.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxBackupAge *int32 `json:"maxBackupAge,omitempty"`

	// MaxBackups is how many full snapshots are copied, the latest first. Unset means all of them.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxBackups *int32 `json:"maxBackups,omitempty"`

	// PodLabels are put on the pod that copies.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// SourceStore is where the backups are.
	SourceStore StoreSpec `json:"sourceStore"`

	// TargetStore is where they go.
	TargetStore StoreSpec `json:"targetStore"`

	// WaitForFinalSnapshot makes the task wait until the source is complete.
	// +optional
	WaitForFinalSnapshot *WaitForFinalSnapshotSpec `json:"waitForFinalSnapshot,omitempty"`
}

// WaitForFinalSnapshotSpec makes a task wait for the final snapshot, the one that is taken when an etcd is stopped and
// not started again.
type WaitForFinalSnapshotSpec struct {
	// Enabled switches waiting on.
	Enabled bool `json:"enabled"`

	// Timeout is how long to wait before copying the existing snapshots. Unset means that it waits for as long as it takes.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// EtcdCopyBackupsTaskStatus says how it went. etcd-druid writes it.
type EtcdCopyBackupsTaskStatus struct {
	// Conditions are Succeeded and Failed.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`

	// LastError is the error that occurred last.
	// +optional
	LastError *string `json:"lastError,omitempty"`

	// ObservedGeneration is the metadata.generation that was acted on last.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}
