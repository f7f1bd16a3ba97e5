package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerInstallation says that an extension controller has to run for a seed (or self-hosted shoot). The
// gardener-controller-manager creates it, the gardenlet carries it out.
type ControllerInstallation struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec says what is to be installed where.
	// +optional
	Spec ControllerInstallationSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the gardenlet last saw of the installation. The extension controller may write providerStatus.
	// +optional
	Status ControllerInstallationStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerInstallationList is a list of ControllerInstallation objects.
type ControllerInstallationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []ControllerInstallation `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ControllerInstallationSpec says what is to be installed where. One of seedRef and shootRef is set.
type ControllerInstallationSpec struct {
	// RegistrationRef is the ControllerRegistration that is installed. Only its name can be chosen; it cannot be
	// changed.
	RegistrationRef corev1.ObjectReference `json:"registrationRef" protobuf:"bytes,1,opt,name=registrationRef"`
	// SeedRef is the seed to install in. The name cannot be changed.
	// +optional
	SeedRef *corev1.ObjectReference `json:"seedRef,omitempty" protobuf:"bytes,2,opt,name=seedRef"`
	// ShootRef is the self-hosted shoot to install in.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty" protobuf:"bytes,4,opt,name=shootRef"`
	// DeploymentRef is the ControllerDeployment to install.
	// +optional
	DeploymentRef *corev1.ObjectReference `json:"deploymentRef,omitempty" protobuf:"bytes,3,opt,name=deploymentRef"`
	// ResourceRefs are the objects in the garden that the installation uses, such as Secrets that its
	// ControllerDeployment names.
	// +optional
	ResourceRefs []corev1.ObjectReference `json:"resourceRefs,omitempty" protobuf:"bytes,5,rep,name=resourceRefs"`
}

// ControllerInstallationStatus is what the gardenlet last saw of an installation.
type ControllerInstallationStatus struct {
	// Conditions are the observations about the installation: Valid, Installed, Healthy, Progressing, Required.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
	// ProviderStatus is what a foreign installation method reports.
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty" protobuf:"bytes,2,opt,name=providerStatus"`
}
