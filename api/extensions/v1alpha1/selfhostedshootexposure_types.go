package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SelfHostedShootExposureResource is the kind of the SelfHostedShootExposure resource, as it is written in a
// ControllerRegistration.
const SelfHostedShootExposureResource = "SelfHostedShootExposure"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=selfhostedshootexposures,singular=selfhostedshootexposure,scope=Namespaced,shortName=exp
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=".status.ingress[0].ip"
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=".status.ingress[0].hostname"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// SelfHostedShootExposure makes the kube-apiserver of a self-hosted shoot reachable, for example with
// a load balancer in front of its control plane nodes.
type SelfHostedShootExposure struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what shall be reachable.
	Spec SelfHostedShootExposureSpec `json:"spec"`

	// Status says under which addresses it is.
	// +optional
	Status SelfHostedShootExposureStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// SelfHostedShootExposureList is a list of SelfHostedShootExposure objects.
type SelfHostedShootExposureList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []SelfHostedShootExposure `json:"items"`
}

// SelfHostedShootExposureSpec says what shall be reachable.
type SelfHostedShootExposureSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// CredentialsRef names the Secret or WorkloadIdentity with the credentials for the infrastructure.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`

	// Port is the port at which the API server listens on the control plane nodes, between 1 and 65535.
	Port int32 `json:"port"`

	// Endpoints lists the control plane nodes. The gardenlet keeps it up to date as nodes come and go.
	Endpoints []ControlPlaneEndpoint `json:"endpoints"`
}

// ControlPlaneEndpoint is a node that runs an API server.
type ControlPlaneEndpoint struct {
	// NodeName is the name of the Node.
	NodeName string `json:"nodeName"`

	// Addresses are the addresses of the node, as in the status of the Node.
	Addresses []corev1.NodeAddress `json:"addresses"`
}

// SelfHostedShootExposureStatus says how the API server can be reached.
type SelfHostedShootExposureStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`

	// Ingress lists the addresses of the load balancer. The gardenlet points the DNS records of the shoot to them.
	// +optional
	Ingress []corev1.LoadBalancerIngress `json:"ingress,omitempty"`
}
