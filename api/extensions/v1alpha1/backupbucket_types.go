package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupBucketResource is the kind of the BackupBucket resource, as it is written in a ControllerRegistration.
const BackupBucketResource = "BackupBucket"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=backupbuckets,singular=backupbucket,scope=Cluster,shortName=bb
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=".spec.region"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// BackupBucket is a bucket in an object store that holds the etcd backups of a seed, a self-hosted
// shoot or the garden.
type BackupBucket struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired bucket.
	Spec BackupBucketSpec `json:"spec"`

	// Status says what the extension did about it.
	// +optional
	Status BackupBucketStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// BackupBucketList is a list of BackupBucket objects.
type BackupBucketList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []BackupBucket `json:"items"`
}

// BackupBucketSpec describes the desired bucket. The name of the bucket is the name of the object.
type BackupBucketSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// Region is where the bucket shall be, in the terms of the provider. Immutable.
	Region string `json:"region"`

	// SecretRef names the Secret with the credentials that the extension uses for the object store.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// BackupBucketStatus says what the extension did about the bucket.
type BackupBucketStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`

	// GeneratedSecretRef names a Secret with credentials that the extension created for this bucket alone. When it is set,
	// backups use it instead of spec.secretRef.
	// +optional
	GeneratedSecretRef *corev1.SecretReference `json:"generatedSecretRef,omitempty"`
}
