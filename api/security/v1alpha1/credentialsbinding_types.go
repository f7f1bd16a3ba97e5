package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CredentialsBinding gives shoots of its namespace access to infrastructure credentials, possibly in another
// namespace, and attaches quotas.
type CredentialsBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Provider says for which provider the credentials are. Cannot be changed.
	Provider CredentialsBindingProvider `json:"provider" protobuf:"bytes,2,opt,name=provider"`
	// CredentialsRef is the Secret (v1), InternalSecret (core.gardener.cloud/v1beta1) or WorkloadIdentity
	// (security.gardener.cloud/v1alpha1) with the credentials. Its own namespace is the default. Cannot be changed.
	CredentialsRef corev1.ObjectReference `json:"credentialsRef" protobuf:"bytes,3,opt,name=credentialsRef"`
	// Quotas are the Quotas that count for shoots using this binding. Their own namespace is the default. Cannot be
	// changed.
	// +optional
	Quotas []corev1.ObjectReference `json:"quotas,omitempty" protobuf:"bytes,4,rep,name=quotas"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CredentialsBindingList is a list of CredentialsBinding objects.
type CredentialsBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []CredentialsBinding `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// CredentialsBindingProvider says for which provider credentials are.
type CredentialsBindingProvider struct {
	// Type is the provider type, such as "local".
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
}
