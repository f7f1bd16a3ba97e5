// +k8s:deepcopy-gen=package
// +groupName=resourcemanager.config.gardener.cloud

// Package v1alpha1 is the configuration file of the gardener-resource-manager.
package v1alpha1
