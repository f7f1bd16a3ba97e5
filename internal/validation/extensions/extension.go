package extensions

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateExtension checks a new Extension.
func ValidateExtension(extension *extensionsv1alpha1.Extension) field.ErrorList {
	return validate(&extension.ObjectMeta, true, &extension.Spec.DefaultSpec)
}

// ValidateExtensionUpdate checks a changed Extension.
func ValidateExtensionUpdate(extension, old *extensionsv1alpha1.Extension) field.ErrorList {
	if errs, done := frozen(&extension.ObjectMeta, extension.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&extension.ObjectMeta, &old.ObjectMeta, &extension.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	return append(errs, ValidateExtension(extension)...)
}
