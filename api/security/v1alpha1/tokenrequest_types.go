package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TokenRequest requests a token of a WorkloadIdentity. It is the body of the subresource "token" and not stored.
type TokenRequest struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec describes the desired token.
	Spec TokenRequestSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	// Status is the answer.
	Status TokenRequestStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// TokenRequestSpec describes the desired token.
type TokenRequestSpec struct {
	// ContextObject is the object that the token is used for. Facts about it are put into the claims.
	// +optional
	ContextObject *ContextObject `json:"contextObject,omitempty" protobuf:"bytes,1,opt,name=contextObject"`
	// ExpirationSeconds is how long the token is valid, in seconds. 3600 is the default; at least 600. The API server
	// may shorten it.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty" protobuf:"varint,2,opt,name=expirationSeconds"`
}

// ContextObject is the object that a token is used for.
type ContextObject struct {
	// Kind is the kind of the object: Shoot, Seed, BackupBucket or BackupEntry.
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// APIVersion is the API group and version of the object.
	APIVersion string `json:"apiVersion" protobuf:"bytes,2,opt,name=apiVersion"`
	// Name is the name of the object.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name"`
	// Namespace is the namespace of the object, if its kind has one.
	// +optional
	Namespace *string `json:"namespace,omitempty" protobuf:"bytes,4,opt,name=namespace"`
	// UID is the UID of the object.
	UID types.UID `json:"uid" protobuf:"bytes,5,opt,name=uid,casttype=k8s.io/apimachinery/pkg/types.UID"`
}

// TokenRequestStatus is a token.
type TokenRequestStatus struct {
	// Token is the signed token.
	Token string `json:"token" protobuf:"bytes,1,opt,name=token"`
	// ExpirationTimestamp is when it runs out.
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp" protobuf:"bytes,2,opt,name=expirationTimestamp"`
}
