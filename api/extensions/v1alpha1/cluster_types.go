package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AnnotationGenericKubeconfigSecretName is the annotation of a Cluster with the name of the Secret, in the namespace of the control plane,
// with the kubeconfig that components share. Written by the gardenlet, read by extensions.
const AnnotationGenericKubeconfigSecretName = "generic-token-kubeconfig.secret.gardener.cloud/name"

// ClusterResource is the kind of the Cluster resource.
const ClusterResource = "Cluster"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusters,singular=cluster,scope=Cluster
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// Cluster hands extensions the garden cluster's objects that belong to a shoot, since they cannot read them there. Its
// name is the control plane namespace of the shoot. The gardenlet writes it; it has no status of its own.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the copies.
	Spec ClusterSpec `json:"spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ClusterList is a list of Cluster objects.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Cluster `json:"items"`
}

// ClusterSpec holds copies of objects of the garden cluster, each with apiVersion and kind.
type ClusterSpec struct {
	// CloudProfile is the CloudProfile of the shoot, after a NamespacedCloudProfile was merged into it. Its kind is
	// CloudProfile.
	// +kubebuilder:pruning:PreserveUnknownFields
	CloudProfile runtime.RawExtension `json:"cloudProfile"`

	// Seed is the Seed the control plane runs on. Unset for self-hosted shoots without a seed.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Seed *runtime.RawExtension `json:"seed,omitempty"`

	// Shoot is the Shoot, with its status.
	// +kubebuilder:pruning:PreserveUnknownFields
	Shoot runtime.RawExtension `json:"shoot"`
}
