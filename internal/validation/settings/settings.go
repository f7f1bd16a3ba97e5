// Package settings validates the objects of settings.gardener.cloud.
package settings

import (
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// The weight of presets decides between those that match.
const minWeight, maxWeight = 1, 100

var (
	metadataPath = field.NewPath("metadata")

	// clientKeys have fields of their own.
	clientKeys = []string{
		"idp-issuer-url", "client-id", "client-secret", "idp-certificate-authority", "idp-certificate-authority-data", "id-token", "refresh-token",
	}
)

// ValidateOpenIDConnectPreset checks a new OpenIDConnectPreset.
func ValidateOpenIDConnectPreset(preset *settingsv1alpha1.OpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&preset.ObjectMeta, true, apivalidation.NameIsDNSLabel, metadataPath)
	return append(errs, presetSpec(&preset.Spec, field.NewPath("spec"))...)
}

// ValidateOpenIDConnectPresetUpdate checks a changed OpenIDConnectPreset.
func ValidateOpenIDConnectPresetUpdate(preset, old *settingsv1alpha1.OpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&preset.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, ValidateOpenIDConnectPreset(preset)...)
}

// ValidateClusterOpenIDConnectPreset checks a new ClusterOpenIDConnectPreset.
func ValidateClusterOpenIDConnectPreset(preset *settingsv1alpha1.ClusterOpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&preset.ObjectMeta, false, apivalidation.NameIsDNSLabel, metadataPath)
	path := field.NewPath("spec")
	errs = append(errs, presetSpec(&preset.Spec.OpenIDConnectPresetSpec, path)...)
	return append(errs, selector(preset.Spec.ProjectSelector, path.Child("projectSelector"))...)
}

// ValidateClusterOpenIDConnectPresetUpdate checks a changed ClusterOpenIDConnectPreset.
func ValidateClusterOpenIDConnectPresetUpdate(preset, old *settingsv1alpha1.ClusterOpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&preset.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, ValidateClusterOpenIDConnectPreset(preset)...)
}

func presetSpec(spec *settingsv1alpha1.OpenIDConnectPresetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Weight < minWeight || spec.Weight > maxWeight {
		errs = append(errs, field.Invalid(path.Child("weight"), spec.Weight, "must be between 1 and 100"))
	}
	errs = append(errs, selector(spec.ShootSelector, path.Child("shootSelector"))...)

	server := path.Child("server")
	if spec.Server.ClientID == "" {
		errs = append(errs, field.Required(server.Child("clientID"), "must be set"))
	}
	if spec.Server.IssuerURL == "" {
		errs = append(errs, field.Required(server.Child("issuerURL"), "must be set"))
	}
	if spec.Server.ClientID != "" && spec.Server.IssuerURL != "" {
		// The same rules as for the Shoot that gets the preset.
		errs = append(errs, core.OIDCConfig(&corev1beta1.OIDCConfig{
			CABundle: spec.Server.CABundle, ClientID: &spec.Server.ClientID, GroupsClaim: spec.Server.GroupsClaim,
			GroupsPrefix: spec.Server.GroupsPrefix, IssuerURL: &spec.Server.IssuerURL, RequiredClaims: spec.Server.RequiredClaims,
			SigningAlgs: spec.Server.SigningAlgs, UsernameClaim: spec.Server.UsernameClaim, UsernamePrefix: spec.Server.UsernamePrefix,
		}, server)...)
	}
	for i, algorithm := range spec.Server.SigningAlgs {
		if slices.Contains(spec.Server.SigningAlgs[:i], algorithm) {
			errs = append(errs, field.Duplicate(server.Child("signingAlgs").Index(i), algorithm))
		}
	}
	if client := spec.Client; client != nil {
		path := path.Child("client")
		if client.Secret != nil && *client.Secret == "" {
			errs = append(errs, field.Invalid(path.Child("secret"), "", "must not be empty if it is set"))
		}
		for key, value := range ordered.Map(client.ExtraConfig) {
			path := path.Child("extraConfig").Key(key)
			if slices.Contains(clientKeys, strings.ToLower(key)) {
				errs = append(errs, field.Forbidden(path, "has a field of its own"))
			}
			if value == "" {
				errs = append(errs, field.Required(path, "must have a value"))
			}
		}
	}
	return errs
}

func selector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}
