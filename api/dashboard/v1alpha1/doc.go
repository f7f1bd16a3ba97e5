// +k8s:deepcopy-gen=package
// +groupName=dashboard.gardener.cloud

// Package v1alpha1 holds the resource with which the dashboard requests terminals. The kind is a
// CustomResourceDefinition.
package v1alpha1
