package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AdminKubeconfigRequest requests a kubeconfig with administrator rights in a shoot. It is the body of the shoot's
// subresource "adminkubeconfig" and not stored.
type AdminKubeconfigRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec describes the desired kubeconfig.
	Spec AdminKubeconfigRequestSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// Status is the answer.
	Status AdminKubeconfigRequestStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// AdminKubeconfigRequestSpec describes the desired kubeconfig.
type AdminKubeconfigRequestSpec struct {
	// ExpirationSeconds is how long the credentials are valid, in seconds. 3600 is the default; at least 600. The API
	// server may shorten it.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty" protobuf:"varint,1,opt,name=expirationSeconds"`
}

// AdminKubeconfigRequestStatus is a kubeconfig.
type AdminKubeconfigRequestStatus struct {
	// Kubeconfig is the kubeconfig, with a client certificate (base64 in JSON).
	Kubeconfig []byte `json:"kubeconfig" protobuf:"bytes,1,opt,name=kubeconfig"`
	// ExpirationTimestamp is when the credentials run out.
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp" protobuf:"bytes,2,opt,name=expirationTimestamp"`
}
