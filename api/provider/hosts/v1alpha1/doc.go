// +k8s:deepcopy-gen=package
// +groupName=hosts.provider.extensions.gardener.cloud

// Package v1alpha1 holds the inventory of provider-hosts, the extension for machines that exist: Hosts, which belong to the operator of a seed, and
// HostClaims, with which the machine-controller-managers of shoots get one each.
package v1alpha1
