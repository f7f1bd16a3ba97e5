package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// GardenClientConnection is the connection of a gardenlet to the garden cluster.
type GardenClientConnection struct {
	// ClientConnectionConfiguration are the settings of the client.
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`
	// GardenClusterAddress is the address of the garden's API server, if the one that clients in the seed use is
	// another.
	// +optional
	GardenClusterAddress *string `json:"gardenClusterAddress,omitempty"`
	// BootstrapKubeconfig is a Secret with a kubeconfig for the first start, with which the gardenlet requests a
	// client certificate.
	// +optional
	BootstrapKubeconfig *corev1.SecretReference `json:"bootstrapKubeconfig,omitempty"`
	// KubeconfigSecret is a Secret for the kubeconfig with that certificate. The gardenlet writes it.
	// +optional
	KubeconfigSecret *corev1.SecretReference `json:"kubeconfigSecret,omitempty"`
	// KubeconfigValidity says how long the certificate is valid and when it is renewed.
	// +optional
	KubeconfigValidity *KubeconfigValidity `json:"kubeconfigValidity,omitempty"`
}

// KubeconfigValidity says how long a client certificate is valid and when it is renewed.
type KubeconfigValidity struct {
	// Validity is the lifetime to request. That of the signer if unset; at least 10 minutes.
	// +optional
	Validity *metav1.Duration `json:"validity,omitempty"`
	// AutoRotationJitterPercentageMin is the earliest time of renewal, in percent of the lifetime. 70 is the default.
	// +optional
	AutoRotationJitterPercentageMin *int32 `json:"autoRotationJitterPercentageMin,omitempty"`
	// AutoRotationJitterPercentageMax is the latest time of renewal, in percent of the lifetime. 90 is the default.
	// +optional
	AutoRotationJitterPercentageMax *int32 `json:"autoRotationJitterPercentageMax,omitempty"`
}

// SeedClientConnection is the connection of a gardenlet to the seed cluster.
type SeedClientConnection struct {
	// ClientConnectionConfiguration are the settings of the client.
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`
}

// ShootClientConnection is the connection of a gardenlet to the shoot clusters.
type ShootClientConnection struct {
	// ClientConnectionConfiguration are the settings of the client.
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`
}
