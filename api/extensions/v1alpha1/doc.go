// +k8s:deepcopy-gen=package
// +groupName=extensions.gardener.cloud

// Package v1alpha1 is the contract between Gardener and its extensions: Gardener writes the spec of these
// resources and the annotation gardener.cloud/operation, the extension that is responsible for kind and type does the work and
// writes the status. They live in the clusters where extensions run, as CustomResourceDefinitions.
package v1alpha1
