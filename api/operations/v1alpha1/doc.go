// Package v1alpha1 has the resources for access to nodes of shoots.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.gardener.gardener.pkg.apis.operations.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=operations.gardener.cloud
package v1alpha1
