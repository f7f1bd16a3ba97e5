// Package v1alpha1 has the resources for credentials: the identities that tokens are issued for, and the bindings through which shoots
// may use credentials.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.gardener.gardener.pkg.apis.security.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=security.gardener.cloud
package v1alpha1
