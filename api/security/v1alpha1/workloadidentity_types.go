package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadIdentity lets Gardener and its extensions act on a foreign system with short-lived tokens of the garden
// instead of static credentials.
type WorkloadIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec describes for which target system the tokens are.
	Spec WorkloadIdentitySpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// Status is the subject of the tokens.
	Status WorkloadIdentityStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadIdentityList is a list of WorkloadIdentity objects.
type WorkloadIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []WorkloadIdentity `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// WorkloadIdentitySpec describes for which target system the tokens are.
type WorkloadIdentitySpec struct {
	// Audiences are the audiences of the tokens. At least one; each once.
	Audiences []string `json:"audiences" protobuf:"bytes,1,rep,name=audiences"`
	// TargetSystem is the system that accepts the tokens.
	TargetSystem TargetSystem `json:"targetSystem" protobuf:"bytes,2,opt,name=targetSystem"`
}

// TargetSystem is a system that accepts tokens of a WorkloadIdentity.
type TargetSystem struct {
	// Type is the type of the system, such as a provider type. Cannot be changed.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// ProviderConfig is what clients need besides the token, in a form that the system's extension knows.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
}

// WorkloadIdentityStatus is the subject of the tokens.
type WorkloadIdentityStatus struct {
	// Sub is the claim "sub" of all tokens of this identity. Written once by the API server; cannot be changed.
	Sub string `json:"sub" protobuf:"bytes,1,opt,name=sub"`
}
