package core

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ValidateSecretBinding checks a new SecretBinding.
func ValidateSecretBinding(binding *corev1beta1.SecretBinding) field.ErrorList {
	errs := secretBinding(binding)
	path := field.NewPath("provider")
	if binding.Provider == nil {
		return append(errs, field.Required(path, "must be set"))
	}
	if binding.Provider.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must be set"))
	}
	return errs
}

// secretBinding checks the fields of new and existing bindings; existing ones may have no provider.
func secretBinding(binding *corev1beta1.SecretBinding) field.ErrorList {
	errs := validateName(&binding.ObjectMeta, true)
	errs = append(errs, secretReference(binding.SecretRef, field.NewPath("secretRef"))...)
	return append(errs, quotaReferences(binding.Quotas, field.NewPath("quotas"))...)
}

// ValidateSecretBindingUpdate checks a changed SecretBinding.
func ValidateSecretBindingUpdate(binding, old *corev1beta1.SecretBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, immutable(binding.SecretRef, old.SecretRef, field.NewPath("secretRef"))...)
	errs = append(errs, immutable(binding.Quotas, old.Quotas, field.NewPath("quotas"))...)
	if old.Provider != nil {
		errs = append(errs, immutable(binding.Provider, old.Provider, field.NewPath("provider"))...)
	}
	return append(errs, secretBinding(binding)...)
}

func secretReference(ref corev1.SecretReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must be set"))
	}
	if ref.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "must be set"))
	}
	return errs
}

func quotaReferences(refs []corev1.ObjectReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ref := range refs {
		if ref.Name == "" {
			errs = append(errs, field.Required(path.Index(i).Child("name"), "must be set"))
		}
		if ref.Namespace == "" {
			errs = append(errs, field.Required(path.Index(i).Child("namespace"), "must be set"))
		}
	}
	return errs
}
