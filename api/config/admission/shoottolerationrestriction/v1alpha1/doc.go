// +k8s:deepcopy-gen=package
// +groupName=shoottolerationrestriction.admission.gardener.cloud

// Package v1alpha1 is the configuration of the admission plugin ShootTolerationRestriction.
package v1alpha1
