package core

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ValidateControllerInstallation checks a new ControllerInstallation.
func ValidateControllerInstallation(installation *corev1beta1.ControllerInstallation) field.ErrorList {
	errs := validateLabelName(&installation.ObjectMeta, false)
	spec, path := installation.Spec, field.NewPath("spec")
	if spec.RegistrationRef.Name == "" {
		errs = append(errs, field.Required(path.Child("registrationRef", "name"), "must be set"))
	}
	if spec.SeedRef == nil && spec.ShootRef == nil {
		errs = append(errs, field.Forbidden(path.Child("seedRef"), "one of seedRef and shootRef must be set"))
	}
	if spec.SeedRef != nil && spec.SeedRef.Name == "" {
		errs = append(errs, field.Required(path.Child("seedRef", "name"), "must be set"))
	}
	if spec.ShootRef != nil {
		if spec.ShootRef.Name == "" {
			errs = append(errs, field.Required(path.Child("shootRef", "name"), "must be set"))
		}
		if spec.ShootRef.Namespace == "" {
			errs = append(errs, field.Required(path.Child("shootRef", "namespace"), "must be set"))
		}
	}
	return errs
}

// ValidateControllerInstallationUpdate checks a changed ControllerInstallation.
func ValidateControllerInstallationUpdate(installation, old *corev1beta1.ControllerInstallation) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&installation.ObjectMeta, &old.ObjectMeta, metadataPath)
	path := field.NewPath("spec")
	errs = append(errs, immutable(installation.Spec.RegistrationRef.Name, old.Spec.RegistrationRef.Name, path.Child("registrationRef", "name"))...)
	switch before, now := old.Spec.SeedRef, installation.Spec.SeedRef; {
	case before != nil && now != nil:
		errs = append(errs, immutable(now.Name, before.Name, path.Child("seedRef", "name"))...)
	case before != nil:
		errs = append(errs, immutable(now, before, path.Child("seedRef"))...)
	}
	switch before, now := old.Spec.ShootRef, installation.Spec.ShootRef; {
	case before != nil && now != nil:
		errs = append(errs, immutable(now.Name, before.Name, path.Child("shootRef", "name"))...)
		errs = append(errs, immutable(now.Namespace, before.Namespace, path.Child("shootRef", "namespace"))...)
	case before != nil || now != nil:
		errs = append(errs, immutable(now, before, path.Child("shootRef"))...)
	}
	return append(errs, ValidateControllerInstallation(installation)...)
}
