package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NetworkResource is the kind of the Network resource, as it is written in a ControllerRegistration.
const NetworkResource = "Network"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=networks,singular=network,scope=Namespaced
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Pod CIDR",type=string,JSONPath=".spec.podCIDR"
// +kubebuilder:printcolumn:name="Service CIDR",type=string,JSONPath=".spec.serviceCIDR"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// Network is the pod network of a shoot, that is, a network plugin.
type Network struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired network.
	Spec NetworkSpec `json:"spec"`

	// Status says what the extension did about it.
	// +optional
	Status NetworkStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// NetworkList is a list of Network objects.
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Network `json:"items"`
}

// NetworkSpec describes the desired network.
type NetworkSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// PodCIDR is the network that pods get their addresses from. The IPv4 one if the shoot has both families. Immutable.
	PodCIDR string `json:"podCIDR"`

	// ServiceCIDR is the network that services get their addresses from. The IPv4 one if the shoot has both families.
	// Immutable.
	ServiceCIDR string `json:"serviceCIDR"`

	// IPFamilies lists the IP families of the network, the preferred one first. Unset means IPv4. A family may be added
	// later, but none removed.
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}

// NetworkStatus says what the extension did about the network.
type NetworkStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`

	// IPFamilies lists the IP families that the network really has now. It differs from the spec while a shoot migrates to
	// dual-stack.
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}
