// Package v1alpha1 has the presets that new shoots get their OpenID Connect configuration from.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.gardener.gardener.pkg.apis.settings.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=settings.gardener.cloud
package v1alpha1
