// +k8s:deepcopy-gen=package
// +groupName=scheduler.config.gardener.cloud

// Package v1alpha1 is the configuration file of the gardener-scheduler.
package v1alpha1
