// Package v1alpha1 has the bodies of the requests for short-lived kubeconfigs of shoots.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.gardener.gardener.pkg.apis.authentication.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=authentication.gardener.cloud
package v1alpha1
