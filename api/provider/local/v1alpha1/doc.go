// +k8s:deepcopy-gen=package
// +groupName=local.provider.extensions.gardener.cloud

// Package v1alpha1 holds the configuration and state of provider-local, the extension for local machines. The kinds
// are embedded in resources of Gardener and not served by themselves.
package v1alpha1
