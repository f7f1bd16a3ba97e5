package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExtensionResource is the kind of the Extension resource, as it is written in a ControllerRegistration.
const ExtensionResource = "Extension"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=extensions,singular=extension,scope=Namespaced,shortName=ext
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// Extension is an addition that has no kind of its own, to a shoot, a seed or the
// garden.
type Extension struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the desired extension, and with which configuration.
	Spec ExtensionSpec `json:"spec"`

	// Status says what the extension did about it.
	// +optional
	Status ExtensionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ExtensionList is a list of Extension objects.
type ExtensionList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Extension `json:"items"`
}

// ExtensionSpec describes the desired extension, and with which configuration.
type ExtensionSpec struct {
	// The fields of DefaultSpec belong here too.
	DefaultSpec `json:",inline"`
}

// ExtensionStatus says what the extension did.
type ExtensionStatus struct {
	// The fields of DefaultStatus belong here too.
	DefaultStatus `json:",inline"`
}
