// Package v1alpha1 has the configuration of the gardenlet.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=gardenlet.config.gardener.cloud
package v1alpha1
