package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InfrastructureResource is the kind of the Infrastructure resource, as it is written in a ControllerRegistration.
const InfrastructureResource = "Infrastructure"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=infrastructures,singular=infrastructure,scope=Namespaced,shortName=infra
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=".spec.region"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// Infrastructure is what the machines of a shoot need before they can be created: networks, routes,
// firewalls, identities.
type Infrastructure struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec InfrastructureSpec `json:"spec"`

	// Status says what there is.
	// +optional
	Status InfrastructureStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// InfrastructureList is a list of Infrastructure objects.
type InfrastructureList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Infrastructure `json:"items"`
}

// InfrastructureSpec describes the desired infrastructure.
type InfrastructureSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// Region is the region of the shoot. Immutable.
	Region string `json:"region"`

	// SecretRef names the Secret with the credentials for the infrastructure.
	SecretRef corev1.SecretReference `json:"secretRef"`

	// SSHPublicKey is the public SSH key that machines shall accept, in the authorized_keys format. In JSON it is base64
	// encoded. Unset when SSH access to nodes is disabled.
	// +optional
	SSHPublicKey []byte `json:"sshPublicKey,omitempty"`
}

// InfrastructureStatus is the created infrastructure, in provider-independent terms.
type InfrastructureStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`

	// NodesCIDR is the network of the nodes. Set when the infrastructure chose it; the gardenlet then copies it to the
	// Shoot. Prefer networking.nodes.
	// +optional
	NodesCIDR *string `json:"nodesCIDR,omitempty"`

	// EgressCIDRs are the addresses that the connections of nodes to the outside come from, as CIDRs. Unset when they are
	// not stable.
	// +optional
	EgressCIDRs []string `json:"egressCIDRs,omitempty"`

	// Networking lists the networks that the infrastructure chose, one or two per list for dual-stack shoots.
	// +optional
	Networking *InfrastructureStatusNetworking `json:"networking,omitempty"`
}

// InfrastructureStatusNetworking lists the networks of a shoot as CIDRs, one per IP family.
type InfrastructureStatusNetworking struct {
	// Pods are the networks of the pods.
	// +optional
	Pods []string `json:"pods,omitempty"`

	// Nodes are the networks of the nodes.
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// Services are the networks of the services.
	// +optional
	Services []string `json:"services,omitempty"`
}
