package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterOpenIDConnectPreset gives new shoots of all selected projects an OpenID Connect configuration. An
// OpenIDConnectPreset of the namespace goes first.
type ClusterOpenIDConnectPreset struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the configuration and for whom it is.
	Spec ClusterOpenIDConnectPresetSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterOpenIDConnectPresetList is a list of ClusterOpenIDConnectPreset objects.
type ClusterOpenIDConnectPresetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []ClusterOpenIDConnectPreset `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ClusterOpenIDConnectPresetSpec is an OpenID Connect configuration and for whom it is.
type ClusterOpenIDConnectPresetSpec struct {
	// OpenIDConnectPresetSpec is the configuration and the selection of shoots.
	OpenIDConnectPresetSpec `json:",inline" protobuf:"bytes,1,opt,name=openIDConnectPresetSpec"`
	// ProjectSelector selects the projects by their labels. Without it none is selected; an empty one selects all.
	// +optional
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty" protobuf:"bytes,2,opt,name=projectSelector"`
}
