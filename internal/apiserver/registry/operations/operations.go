// Package operations describes the kinds of the group operations.gardener.cloud, one file per kind.
package operations

import (
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
)

var gvk = operationsv1alpha1.SchemeGroupVersion.WithKind

// Kinds returns all kinds of the group.
func Kinds() []kind.Any { return []kind.Any{bastion()} }
