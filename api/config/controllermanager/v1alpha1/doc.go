// +k8s:deepcopy-gen=package
// +groupName=controllermanager.config.gardener.cloud

// Package v1alpha1 is the configuration file of the gardener-controller-manager.
package v1alpha1
