package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BackupEntry is the directory for the etcd backups of one shoot in a BackupBucket. It outlives its shoot for a
// grace period.
type BackupEntry struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata: The name is made of the technical ID and the UID of the shoot.
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the desired entry.
	// +optional
	Spec BackupEntrySpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the gardenlet last saw of the entry.
	// +optional
	Status BackupEntryStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BackupEntryList is a list of BackupEntry objects.
type BackupEntryList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []BackupEntry `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// BackupEntrySpec is the desired entry.
type BackupEntrySpec struct {
	// BucketName is the BackupBucket that holds the entry.
	BucketName string `json:"bucketName" protobuf:"bytes,1,opt,name=bucketName"`
	// SeedName is the seed whose gardenlet is responsible for this entry; it changes when the shoot moves to another seed.
	// +optional
	SeedName *string `json:"seedName,omitempty" protobuf:"bytes,2,opt,name=seedName"`
	// ShootRef is the self-hosted shoot whose gardenlet is responsible for this entry.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty" protobuf:"bytes,3,opt,name=shootRef"`
}

// BackupEntryStatus is what the gardenlet last saw of the entry.
type BackupEntryStatus struct {
	// LastOperation is the last operation on the entry. Written by the gardenlet.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty" protobuf:"bytes,1,opt,name=lastOperation"`
	// LastError is the error of the last operation, if it failed.
	// +optional
	LastError *LastError `json:"lastError,omitempty" protobuf:"bytes,2,opt,name=lastError"`
	// ObservedGeneration is the generation of the spec that the gardenlet last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,3,opt,name=observedGeneration"`
	// SeedName is the seed that last worked on the entry. It differs from spec.seedName while the entry moves.
	// +optional
	SeedName *string `json:"seedName,omitempty" protobuf:"bytes,4,opt,name=seedName"`
	// MigrationStartTime is when the entry started to move to another seed.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty" protobuf:"bytes,5,opt,name=migrationStartTime"`
}
