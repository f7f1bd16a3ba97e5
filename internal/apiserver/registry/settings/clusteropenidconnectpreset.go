package settings

import (
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/settings"
)

func clusterOpenIDConnectPreset() *kind.Kind[settingsv1alpha1.ClusterOpenIDConnectPreset] {
	return &kind.Kind[settingsv1alpha1.ClusterOpenIDConnectPreset]{
		GroupVersionKind: gvk("ClusterOpenIDConnectPreset"),
		Plural:           "clusteropenidconnectpresets",
		ShortNames:       []string{"coidcps"},

		Validate:       settings.ValidateClusterOpenIDConnectPreset,
		ValidateUpdate: settings.ValidateClusterOpenIDConnectPresetUpdate,
		Columns: []kind.Column[settingsv1alpha1.ClusterOpenIDConnectPreset]{
			{
				Name: "Issuer", Description: "URL of the issuer of tokens.",
				Value: func(c *settingsv1alpha1.ClusterOpenIDConnectPreset) any { return c.Spec.Server.IssuerURL },
			},
		},
	}
}
