// +k8s:deepcopy-gen=package
// +groupName=etcddruid.config.gardener.cloud

// Package v1alpha1 is the configuration file of etcd-druid.
package v1alpha1
