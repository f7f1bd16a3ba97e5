// +k8s:deepcopy-gen=package
// +groupName=operator.config.gardener.cloud

// Package v1alpha1 is the configuration file of the gardener-operator.
package v1alpha1
