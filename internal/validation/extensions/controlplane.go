package extensions

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateControlPlane checks a new ControlPlane.
func ValidateControlPlane(controlPlane *extensionsv1alpha1.ControlPlane) field.ErrorList {
	spec := &controlPlane.Spec
	errs := validate(&controlPlane.ObjectMeta, true, &spec.DefaultSpec)
	errs = append(errs, required(spec.Region, specPath.Child("region"))...)
	return append(errs, secretReference(spec.SecretRef, specPath.Child("secretRef"))...)
}

// ValidateControlPlaneUpdate checks a changed ControlPlane.
func ValidateControlPlaneUpdate(controlPlane, old *extensionsv1alpha1.ControlPlane) field.ErrorList {
	if errs, done := frozen(&controlPlane.ObjectMeta, controlPlane.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&controlPlane.ObjectMeta, &old.ObjectMeta, &controlPlane.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(controlPlane.Spec.Region, old.Spec.Region, specPath.Child("region"))...)
	return append(errs, ValidateControlPlane(controlPlane)...)
}
