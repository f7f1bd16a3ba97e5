package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Configuration configures the admission plugin ShootResourceReservation.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// UseGKEFormula makes the plugin calculate the resources that are reserved for the kubelet from the machine type, by
	// the formula that GKE uses. Otherwise it sets fixed values.
	UseGKEFormula bool `json:"useGKEFormula"`

	// Selector selects the Shoots that useGKEFormula is for. Unset means all of them.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}
