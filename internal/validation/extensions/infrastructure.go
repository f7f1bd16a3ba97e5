package extensions

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateInfrastructure checks a new Infrastructure.
func ValidateInfrastructure(infrastructure *extensionsv1alpha1.Infrastructure) field.ErrorList {
	spec := &infrastructure.Spec
	errs := validate(&infrastructure.ObjectMeta, true, &spec.DefaultSpec)
	errs = append(errs, required(spec.Region, specPath.Child("region"))...)
	return append(errs, secretReference(spec.SecretRef, specPath.Child("secretRef"))...)
}

// ValidateInfrastructureUpdate checks a changed Infrastructure.
func ValidateInfrastructureUpdate(infrastructure, old *extensionsv1alpha1.Infrastructure) field.ErrorList {
	if errs, done := frozen(&infrastructure.ObjectMeta, infrastructure.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&infrastructure.ObjectMeta, &old.ObjectMeta, &infrastructure.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(infrastructure.Spec.Region, old.Spec.Region, specPath.Child("region"))...)
	return append(errs, ValidateInfrastructure(infrastructure)...)
}
