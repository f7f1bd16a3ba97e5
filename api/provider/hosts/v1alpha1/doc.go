// +k8s:deepcopy-gen=package
// +groupName=hosts.provider.extensions.gardener.cloud

// Package v1alpha1 holds the inventory of provider-hosts, the extension for machines that exist: Hosts and AddressPools, which belong to the operator of a
// seed; and HostClaims and AddressClaims, with which the control planes of shoots get machines and addresses of load balancers.
package v1alpha1
