// +k8s:deepcopy-gen=package
// +groupName=providerlocal.config.gardener.cloud

// Package v1alpha1 is the configuration file of provider-local.
package v1alpha1
