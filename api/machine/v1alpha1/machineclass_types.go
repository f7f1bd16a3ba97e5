package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machineclasses,singular=machineclass,scope=Namespaced,shortName=mcc
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"

// MachineClass describes how machines are made at the infrastructure. The extension of the infrastructure writes it.
type MachineClass struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// CredentialsSecretRef names the Secret with the credentials for the infrastructure. Unset means secretRef.
	// +optional
	CredentialsSecretRef *corev1.SecretReference `json:"credentialsSecretRef,omitempty"`

	// NodeTemplate describes for the cluster-autoscaler what a node would offer before there is one.
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`

	// Provider is the name of the driver that understands providerSpec.
	// +optional
	Provider string `json:"provider,omitempty"`

	// ProviderSpec is the configuration for the driver.
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderSpec runtime.RawExtension `json:"providerSpec"`

	// SecretRef names the Secret with the user data of machines, and the credentials if credentialsSecretRef is unset.
	// +optional
	SecretRef *corev1.SecretReference `json:"secretRef,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// MachineClassList is a list of MachineClass objects.
type MachineClassList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []MachineClass `json:"items"`
}

// NodeTemplate describes what a node offers.
type NodeTemplate struct {
	// Architecture is the CPU architecture, amd64 or arm64.
	// +optional
	Architecture *string `json:"architecture,omitempty"`

	// Capacity is what the machine has.
	Capacity corev1.ResourceList `json:"capacity"`

	// InstanceType is the type of the machine.
	InstanceType string `json:"instanceType"`

	// Region is the region of the machine.
	Region string `json:"region"`

	// VirtualCapacity is what the node offers beyond what the machine has.
	// +optional
	VirtualCapacity corev1.ResourceList `json:"virtualCapacity,omitempty"`

	// Zone is the zone of the machine.
	Zone string `json:"zone"`
}

const (
	// MachineClassKind is the kind that ClassSpec.Kind names.
	MachineClassKind = "MachineClass"
)
