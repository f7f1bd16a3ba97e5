// +k8s:deepcopy-gen=package
// +groupName=resources.gardener.cloud

// Package v1alpha1 holds the ManagedResource and the labels and annotations that the gardener-resource-manager
// understands. It lives in seeds and in the runtime cluster of the garden, as a CustomResourceDefinition.
package v1alpha1
