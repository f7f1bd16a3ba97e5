// +k8s:deepcopy-gen=package
// +groupName=druid.gardener.cloud

// Package v1alpha1 holds the resources of etcd-druid, which runs the etcds of control planes. The kinds are
// CustomResourceDefinitions.
package v1alpha1
