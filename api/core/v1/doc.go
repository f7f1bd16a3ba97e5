// Package v1 has the newer version of ControllerDeployment.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.gardener.gardener.pkg.apis.core.v1
// +k8s:protobuf-gen=package
// +groupName=core.gardener.cloud
package v1
