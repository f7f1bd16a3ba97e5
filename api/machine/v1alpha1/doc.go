// +k8s:deepcopy-gen=package
// +groupName=machine.sapcloud.io

// Package v1alpha1 holds the resources of the machine-controller-manager, which runs the machines of shoots. The kinds
// are CustomResourceDefinitions.
package v1alpha1
