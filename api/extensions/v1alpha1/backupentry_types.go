package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BackupEntryResource is the kind of the BackupEntry resource, as it is written in a ControllerRegistration.
const BackupEntryResource = "BackupEntry"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=backupentries,singular=backupentry,scope=Cluster,shortName=be
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=".spec.region"
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=".spec.bucketName"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// BackupEntry is the part of a bucket that has the backups of one cluster. The extension prepares access to it, and deletes
// its content in the end.
type BackupEntry struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which part of which bucket is meant.
	Spec BackupEntrySpec `json:"spec"`

	// Status says what the extension did about it.
	// +optional
	Status BackupEntryStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// BackupEntryList is a list of BackupEntry objects.
type BackupEntryList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []BackupEntry `json:"items"`
}

// BackupEntrySpec says which part of which bucket is meant. The objects of the entry start with the name of the
// BackupEntry.
type BackupEntrySpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// BackupBucketProviderStatus is a copy of status.providerStatus of the BackupBucket the entry is in.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	BackupBucketProviderStatus *runtime.RawExtension `json:"backupBucketProviderStatus,omitempty"`

	// Region is the region of the bucket. Immutable.
	Region string `json:"region"`

	// BucketName is the name of the bucket. It changes when the backups move to the bucket of another seed.
	BucketName string `json:"bucketName"`

	// SecretRef names the Secret with the credentials for the bucket.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// BackupEntryStatus says what the extension did about the entry.
type BackupEntryStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`
}
