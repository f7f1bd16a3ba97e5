// Package v1alpha1 has the resources that deploy gardenlets and turn shoots into seeds.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.gardener.gardener.pkg.apis.seedmanagement.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=seedmanagement.gardener.cloud
package v1alpha1
