// +k8s:deepcopy-gen=package
// +groupName=autoscaling.gardener.cloud

// Package v1alpha1 holds the resource of the pvc-autoscaler. The kind is a CustomResourceDefinition.
package v1alpha1
