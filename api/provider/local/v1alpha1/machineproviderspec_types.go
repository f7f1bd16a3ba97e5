package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineProvider is the value of MachineClass.provider for machines that are created from a MachineProviderSpec.
const MachineProvider = "local"

// MachineProviderSpec is the providerSpec of a MachineClass whose machines are pods.
//
// A machine gets the CPU and memory in the class's nodeTemplate.capacity as its limits, and runs the user data in the key
// "userData" of the Secret in the class's secretRef. The driver needs no credentials. It is decoded strictly, by its fields alone:
// apiVersion and kind are for users.
type MachineProviderSpec struct {
	metav1.TypeMeta `json:",inline"`

	// Image is the machine image, as a reference that the nodes of the seed can pull. Required.
	Image string `json:"image"`

	// Namespace is that of the pods, in the cluster that the credentials of the shoot name, or else in that of the class. Unset means the
	// namespace of the class, in which versions before 1.150 created them.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Zone is the value of the label topology.kubernetes.io/zone of the nodes on which the pods may be. Unset means any node. The driver reads it when it
	// creates a machine.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Registries are from where containerd on the machine pulls images first. Machines of a local landscape need them for all
	// registries that the landscape mirrors, as they cannot pull anything otherwise. What the machine's image or user data say
	// about other registries stays.
	// +optional
	// +listType=map
	// +listMapKey=host
	Registries []MachineRegistry `json:"registries,omitempty"`
}

// MachineRegistry says where the images of a registry are found. It becomes /etc/containerd/certs.d/<host>/hosts.toml.
type MachineRegistry struct {
	// Host is the registry as it stands in references of images, such as "registry.k8s.io". Required.
	Host string `json:"host"`

	// Server is the URL of the registry itself, which is used last. Unset means https and the host.
	// +optional
	Server string `json:"server,omitempty"`

	// Mirrors are URLs that are used before, in this order. One with a path, such as
	// "http://172.30.0.1:5000/v2/registry.k8s.io", is taken as the whole root of the API; to others, /v2 is added.
	// +optional
	Mirrors []string `json:"mirrors,omitempty"`
}
