package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CloudProfileConfig is the providerConfig of a CloudProfile of type local.
type CloudProfileConfig struct {
	metav1.TypeMeta `json:",inline"`

	// MachineImages maps the machine images of the CloudProfile to images that local machines are started from.
	MachineImages []MachineImages `json:"machineImages"`

	// LoadBalancer configures the load balancers that stand in for those of an infrastructure.
	LoadBalancer LoadBalancer `json:"loadBalancer"`
}

// MachineImages maps the versions of a machine image.
type MachineImages struct {
	// Name is the name of the machine image in the CloudProfile.
	Name string `json:"name"`

	// Versions are its versions.
	Versions []MachineImageVersion `json:"versions"`
}

// MachineImageVersion maps a version of a machine image.
type MachineImageVersion struct {
	// Version is the version in the CloudProfile.
	Version string `json:"version"`

	// Image is the image that local machines are started from. Used when the CloudProfile defines no capabilities.
	// +optional
	Image string `json:"image,omitempty"`

	// CapabilityFlavors are the images for machines of certain capabilities. Used when the CloudProfile defines
	// capabilities.
	CapabilityFlavors []MachineImageFlavor `json:"capabilityFlavors"`
}

// MachineImageFlavor is an image for machines of certain capabilities.
type MachineImageFlavor struct {
	// Image is the image that local machines are started from.
	Image string `json:"image"`

	// Capabilities are what the image is for, such as the architecture.
	// +optional
	Capabilities corev1beta1.Capabilities `json:"capabilities,omitempty"`
}

// LoadBalancer configures load balancers.
type LoadBalancer struct {
	// Image is the image of the process that balances the load.
	Image string `json:"image"`
}
