// +k8s:deepcopy-gen=package
// +groupName=admissioncontroller.config.gardener.cloud

// Package v1alpha1 is the configuration file of the gardener-admission-controller.
package v1alpha1
