package settings

import (
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/settings"
)

func openIDConnectPreset() *kind.Kind[settingsv1alpha1.OpenIDConnectPreset] {
	return &kind.Kind[settingsv1alpha1.OpenIDConnectPreset]{
		GroupVersionKind: gvk("OpenIDConnectPreset"),
		Plural:           "openidconnectpresets",
		ShortNames:       []string{"oidcps"},
		Namespaced:       true,

		Validate:       settings.ValidateOpenIDConnectPreset,
		ValidateUpdate: settings.ValidateOpenIDConnectPresetUpdate,
		Columns: []kind.Column[settingsv1alpha1.OpenIDConnectPreset]{
			{
				Name: "Issuer", Description: "URL of the issuer of tokens.",
				Value: func(o *settingsv1alpha1.OpenIDConnectPreset) any { return o.Spec.Server.IssuerURL },
			},
		},
	}
}
