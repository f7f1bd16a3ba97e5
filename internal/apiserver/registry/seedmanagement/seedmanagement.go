// Package seedmanagement describes the kinds of the group seedmanagement.gardener.cloud, one file per kind.
package seedmanagement

import (
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

var gvk = seedmanagementv1alpha1.SchemeGroupVersion.WithKind

// Kinds returns all kinds of the group. The options are the feature gates that validation depends on.
func Kinds(options core.Options) []kind.Any {
	return []kind.Any{gardenlet(), managedSeed(), managedSeedSet(options)}
}
