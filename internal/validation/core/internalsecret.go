package core

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// ValidateInternalSecret checks a new InternalSecret. It expects stringData to be merged into data.
func ValidateInternalSecret(secret *corev1beta1.InternalSecret) field.ErrorList {
	errs := validateName(&secret.ObjectMeta, true)
	path := field.NewPath("data")
	size := 0
	for key, value := range ordered.Map(secret.Data) {
		for _, msg := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(path.Key(key), key, msg))
		}
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(path, "", corev1.MaxSecretSize))
	}

	require := func(key string) {
		if _, ok := secret.Data[key]; !ok {
			errs = append(errs, field.Required(path.Key(key), "must be set for this type"))
		}
	}
	// requireJSON expects a file in JSON, as clients of registries write it.
	requireJSON := func(key string) {
		value, ok := secret.Data[key]
		if !ok {
			errs = append(errs, field.Required(path.Key(key), "must be set for this type"))
		} else if err := json.Unmarshal(value, &map[string]any{}); err != nil {
			errs = append(errs, field.Invalid(path.Key(key), "<secret contents redacted>", err.Error()))
		}
	}
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken:
		if secret.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(metadataPath.Child("annotations").Key(corev1.ServiceAccountNameKey), "must be set for this type"))
		}
	case corev1.SecretTypeDockercfg:
		requireJSON(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		requireJSON(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, username := secret.Data[corev1.BasicAuthUsernameKey]
		_, password := secret.Data[corev1.BasicAuthPasswordKey]
		if !username && !password {
			require(corev1.BasicAuthUsernameKey)
			require(corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(secret.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(path.Key(corev1.SSHAuthPrivateKey), "must be set for this type"))
		}
	case corev1.SecretTypeTLS:
		require(corev1.TLSCertKey)
		require(corev1.TLSPrivateKeyKey)
	}
	return errs
}

// ValidateInternalSecretUpdate checks a changed InternalSecret. It expects stringData to be merged into data.
func ValidateInternalSecretUpdate(secret, old *corev1beta1.InternalSecret) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&secret.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, immutable(secret.Type, old.Type, field.NewPath("type"))...)
	if old.Immutable != nil && *old.Immutable {
		if secret.Immutable == nil || !*secret.Immutable {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), "cannot be unset"))
		}
		if !equal(secret.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), "cannot be changed, as the secret is immutable"))
		}
	}
	return append(errs, ValidateInternalSecret(secret)...)
}
