// +k8s:deepcopy-gen=package

// Package v1alpha1 is the part of an extension's configuration that is about its health checks. It has no API group: extensions
// embed it in a kind of their own.
package v1alpha1
