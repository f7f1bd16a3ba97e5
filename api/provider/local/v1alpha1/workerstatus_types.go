package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkerStatus is the providerStatus of a Worker of type local.
type WorkerStatus struct {
	metav1.TypeMeta `json:",inline"`

	// MachineImages lists the images that the machines of the Worker were started from, so that they stay known after they
	// left the CloudProfile.
	// +optional
	MachineImages []MachineImage `json:"machineImages,omitempty"`
}

// MachineImage is an image that machines were started from.
type MachineImage struct {
	// Name is the name of the machine image in the CloudProfile.
	Name string `json:"name"`

	// Version is its version.
	Version string `json:"version"`

	// Image is the image that local machines were started from.
	Image string `json:"image"`

	// Capabilities are what the image is for.
	// +optional
	Capabilities corev1beta1.Capabilities `json:"capabilities,omitempty"`
}
