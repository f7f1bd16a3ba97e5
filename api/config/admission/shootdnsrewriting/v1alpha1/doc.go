// +k8s:deepcopy-gen=package
// +groupName=shootdnsrewriting.admission.gardener.cloud

// Package v1alpha1 is the configuration of the admission plugin ShootDNSRewriting.
package v1alpha1
