package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// BastionResource is the kind of the Bastion resource, as it is written in a ControllerRegistration.
const BastionResource = "Bastion"

// BastionReady is the condition type that says whether a bastion accepts SSH connections.
const BastionReady corev1beta1.ConditionType = "BastionReady"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=bastions,singular=bastion,scope=Namespaced
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=".status.ingress.ip"
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=".status.ingress.hostname"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// Bastion is a machine with a public address in the network of a shoot, through which an operator
// reaches the shoot's nodes with SSH. It is deleted when it is not needed any more.
type Bastion struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired machine. Written by the gardenlet from the Bastion of the garden cluster.
	Spec BastionSpec `json:"spec"`

	// Status says how the machine can be reached.
	// +optional
	Status BastionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// BastionList is a list of Bastion objects.
type BastionList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Bastion `json:"items"`
}

// BastionSpec describes the desired machine and the addresses that may connect to it.
type BastionSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// UserData is the script that the machine runs when it boots first. It brings the user's public SSH key. In JSON it is
	// base64 encoded. Immutable.
	UserData []byte `json:"userData"`

	// Ingress lists from where SSH connections are allowed. An empty list is refused.
	Ingress []BastionIngressPolicy `json:"ingress"`
}

// BastionIngressPolicy is one source that may connect to the bastion.
type BastionIngressPolicy struct {
	// IPBlock is the CIDR that may connect. "except" carves out parts of it.
	IPBlock networkingv1.IPBlock `json:"ipBlock"`
}

// BastionStatus says how the machine can be reached.
type BastionStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`

	// Ingress is the public IP address or host name of the bastion. Unset until the machine has one.
	// +optional
	Ingress *corev1.LoadBalancerIngress `json:"ingress,omitempty"`
}
