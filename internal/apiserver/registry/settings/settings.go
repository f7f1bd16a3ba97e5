// Package settings describes the kinds of the group settings.gardener.cloud, one file per kind.
package settings

import (
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
)

var gvk = settingsv1alpha1.SchemeGroupVersion.WithKind

// Kinds returns all kinds of the group.
func Kinds() []kind.Any { return []kind.Any{clusterOpenIDConnectPreset(), openIDConnectPreset()} }
