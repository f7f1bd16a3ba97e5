package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BackupBucket is a bucket in an object store for etcd backups. The gardenlet creates one per seed (or self-hosted
// shoot) and lets the provider extension manage it.
type BackupBucket struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata: The name is the UID of the seed.
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the desired bucket.
	Spec BackupBucketSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the gardenlet last saw of the bucket.
	Status BackupBucketStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BackupBucketList is a list of BackupBucket objects.
type BackupBucketList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []BackupBucket `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// BackupBucketSpec is the desired bucket.
type BackupBucketSpec struct {
	// Provider says on which object store and in which region the bucket is. Cannot be changed.
	Provider BackupBucketProvider `json:"provider" protobuf:"bytes,1,opt,name=provider"`
	// ProviderConfig is passed to the provider extension.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// SeedName is the seed whose gardenlet is responsible for this bucket. Cannot be changed once set. Exactly one of
	// seedName and shootRef is set.
	// +optional
	SeedName *string `json:"seedName,omitempty" protobuf:"bytes,4,opt,name=seedName"`
	// CredentialsRef points to the Secret or WorkloadIdentity with access to the object store.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty" protobuf:"bytes,5,opt,name=credentialsRef"`
	// ShootRef is the self-hosted shoot whose gardenlet is responsible for this bucket. Cannot be changed once set.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty" protobuf:"bytes,6,opt,name=shootRef"`
}

// BackupBucketProvider says where a bucket is.
type BackupBucketProvider struct {
	// Type is the type of the object store.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Region is the region of the object store.
	Region string `json:"region" protobuf:"bytes,2,opt,name=region"`
}

// BackupBucketStatus is what the gardenlet last saw of the bucket.
type BackupBucketStatus struct {
	// ProviderStatus is what the provider extension reports about the bucket.
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty" protobuf:"bytes,1,opt,name=providerStatus"`
	// LastOperation is the last operation on the bucket. Written by the gardenlet.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty" protobuf:"bytes,2,opt,name=lastOperation"`
	// LastError is the error of the last operation, if it failed.
	// +optional
	LastError *LastError `json:"lastError,omitempty" protobuf:"bytes,3,opt,name=lastError"`
	// ObservedGeneration is the generation of the spec that the gardenlet last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,4,opt,name=observedGeneration"`
	// GeneratedSecretRef is the Secret with credentials that the provider extension generated for the bucket, if it
	// does so.
	// +optional
	GeneratedSecretRef *corev1.SecretReference `json:"generatedSecretRef,omitempty" protobuf:"bytes,5,opt,name=generatedSecretRef"`
}
