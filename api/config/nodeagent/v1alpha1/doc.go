// +k8s:deepcopy-gen=package
// +groupName=nodeagent.config.gardener.cloud

// Package v1alpha1 is the configuration file of the gardener-node-agent.
package v1alpha1
