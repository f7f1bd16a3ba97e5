package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Configuration configures the admission plugin ShootTolerationRestriction.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// Defaults are tolerations that every new Shoot gets.
	// +optional
	Defaults []corev1beta1.Toleration `json:"defaults,omitempty"`

	// Whitelist are the tolerations that Shoots may have. A Project can allow more.
	// +optional
	Whitelist []corev1beta1.Toleration `json:"whitelist,omitempty"`
}
