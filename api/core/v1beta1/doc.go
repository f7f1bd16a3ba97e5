// Package v1beta1 has the resources that make up a garden: shoots, the seeds that host them, the profiles, projects, quotas and
// credentials they use, and the extensions that serve them.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.gardener.gardener.pkg.apis.core.v1beta1
// +k8s:protobuf-gen=package
// +groupName=core.gardener.cloud
package v1beta1
