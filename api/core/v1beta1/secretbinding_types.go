package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SecretBinding gives shoots of its namespace access to a Secret with infrastructure credentials, possibly in
// another namespace, and attaches quotas. CredentialsBinding replaces it.
type SecretBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// SecretRef is the Secret with the credentials. Its own namespace is the default. Cannot be changed.
	SecretRef corev1.SecretReference `json:"secretRef" protobuf:"bytes,2,opt,name=secretRef"`
	// Quotas are the Quotas that count for shoots using this binding. Cannot be changed.
	// +optional
	Quotas []corev1.ObjectReference `json:"quotas,omitempty" protobuf:"bytes,3,rep,name=quotas"`
	// Provider says for which providers the credentials are. Cannot be changed once set.
	// +optional
	Provider *SecretBindingProvider `json:"provider,omitempty" protobuf:"bytes,4,opt,name=provider"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SecretBindingList is a list of SecretBinding objects.
type SecretBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []SecretBinding `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// SecretBindingProvider says for which provider credentials are.
type SecretBindingProvider struct {
	// Type is the provider type, or several separated by commas.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
}
