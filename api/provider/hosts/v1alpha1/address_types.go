package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addresspools,singular=addresspool,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.spec.addresses`,description="The ranges."
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`,description="Whether addresses are given."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].message`,description="Why not."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// AddressPool has addresses for load balancers of shoots whose nodes are hosts. It is in the cluster of the seed and belongs to its operator. The addresses
// are in the network of the hosts, and nothing else has them.
type AddressPool struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which addresses there are, and for which shoots. Set by operators.
	Spec AddressPoolSpec `json:"spec"`

	// Status is written by provider-hosts only.
	// +optional
	Status AddressPoolStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// AddressPoolList is a list of AddressPool objects.
type AddressPoolList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []AddressPool `json:"items"`
}

// AddressPoolSpec says which addresses there are, and for which shoots.
type AddressPoolSpec struct {
	// Addresses are ranges such as "192.0.2.10-192.0.2.20", networks such as "192.0.2.64/28", of which all addresses are given, and single addresses. They
	// do not overlap. An address that is removed stays with the load balancer that has it.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Addresses []string `json:"addresses"`

	// Namespaces are patterns of the namespaces of control planes that get addresses, such as "shoot--dev--*" for all shoots of the project dev. Empty
	// means all.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
}

// ConditionValid is the type of the condition that says whether addresses of a pool are given. Its message names the fields that are not valid.
const ConditionValid = "Valid"

// AddressPoolStatus is what is known of a pool. Written by provider-hosts.
type AddressPoolStatus struct {
	// Assigned are the addresses that load balancers have.
	// +optional
	// +listType=map
	// +listMapKey=address
	Assigned []AssignedAddress `json:"assigned,omitempty"`

	// Conditions has the condition Valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AssignedAddress is an address and the AddressClaim that has it.
type AssignedAddress struct {
	// Address is the IP address.
	Address string `json:"address"`

	// Namespace is that of the control plane.
	Namespace string `json:"namespace"`

	// Name is that of the AddressClaim.
	Name string `json:"name"`

	// UID distinguishes it from others of this name.
	UID types.UID `json:"uid"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addressclaims,singular=addressclaim,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.service`,description="The Service in the shoot."
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`,description="The address that it has."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,description="Why it has none."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// AddressClaim is a load balancer of a shoot. The cloud-controller-manager of the shoot creates it in the namespace of the control plane, and provider-hosts
// finds an address for it, which is free again when the claim is deleted. So control planes have no permission for AddressPools.
type AddressClaim struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which address fits. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Spec AddressClaimSpec `json:"spec"`

	// Status is written by provider-hosts only.
	// +optional
	Status AddressClaimStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// AddressClaimList is a list of AddressClaim objects.
type AddressClaimList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []AddressClaim `json:"items"`
}

// AddressClaimSpec says which address fits.
type AddressClaimSpec struct {
	// Service is the namespace and the name of the Service in the shoot: "default/web".
	Service string `json:"service"`

	// Family is IPv4 or IPv6.
	// +kubebuilder:validation:Enum=IPv4;IPv6
	Family corev1.IPFamily `json:"family"`

	// Address is the one that the Service asks for. Empty means any.
	// +kubebuilder:validation:MaxLength=45
	// +optional
	Address string `json:"address,omitempty"`
}

// AddressClaimStatus is the address of a claim. Written by provider-hosts.
type AddressClaimStatus struct {
	// Address is the one that the claim has, and no other claim.
	// +optional
	Address string `json:"address,omitempty"`

	// Message says why there is none.
	// +optional
	Message string `json:"message,omitempty"`
}

// LeaseNamespace is the namespace in shoots with a Lease per address of a load balancer: the node that holds it answers for the address.
const LeaseNamespace = "hosts-load-balancers"
