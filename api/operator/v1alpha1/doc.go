// +k8s:deepcopy-gen=package
// +groupName=operator.gardener.cloud

// Package v1alpha1 holds what operators write to the runtime cluster to get a garden, for the gardener-operator to
// read. The kinds are CustomResourceDefinitions.
package v1alpha1
