package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Configuration configures the admission plugin ShootDNSRewriting.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// CommonSuffixes are domains such as "example.com" that are added to
	// spec.systemComponents.coreDNS.rewriting.commonSuffixes of new Shoots. Pods there find names in these domains without
	// going through the search path first.
	// +optional
	CommonSuffixes []string `json:"commonSuffixes,omitempty"`
}
