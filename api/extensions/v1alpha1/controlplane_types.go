package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ControlPlaneResource is the kind of the ControlPlane resource, as it is written in a ControllerRegistration.
const ControlPlaneResource = "ControlPlane"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=controlplanes,singular=controlplane,scope=Namespaced,shortName=cp
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// ControlPlane describes the parts of a control plane that only the extension of an infrastructure knows, such as
// the cloud controller manager and storage drivers.
type ControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what the extension needs to know.
	Spec ControlPlaneSpec `json:"spec"`

	// Status says what the extension did about it.
	// +optional
	Status ControlPlaneStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ControlPlaneList is a list of ControlPlane objects.
type ControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []ControlPlane `json:"items"`
}

// ControlPlaneSpec says what the extension needs to know to deploy its control plane parts.
type ControlPlaneSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`

	// InfrastructureProviderStatus is a copy of status.providerStatus of the Infrastructure, such as the IDs of networks.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus,omitempty"`

	// Region is the region of the shoot. Immutable.
	Region string `json:"region"`

	// SecretRef names the Secret with the credentials for the infrastructure.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// ControlPlaneStatus says what the extension did about the control plane parts.
type ControlPlaneStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`
}
