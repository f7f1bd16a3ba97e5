package core

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// maxHandlerLength leaves room for the prefix of the handler's namespace.
const maxHandlerLength = 34

// ValidateExposureClass checks a new ExposureClass.
func ValidateExposureClass(class *corev1beta1.ExposureClass) field.ErrorList {
	return append(validateName(&class.ObjectMeta, false), exposureClass(class)...)
}

// ValidateExposureClassUpdate checks a changed ExposureClass.
func ValidateExposureClassUpdate(class, old *corev1beta1.ExposureClass) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&class.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, immutable(class.Handler, old.Handler, field.NewPath("handler"))...)
	errs = append(errs, immutable(class.Scheduling, old.Scheduling, field.NewPath("scheduling"))...)
	return append(errs, validateName(&class.ObjectMeta, false)...)
}

func exposureClass(class *corev1beta1.ExposureClass) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("handler")
	for _, msg := range validation.IsDNS1123Label(class.Handler) {
		errs = append(errs, field.Invalid(path, class.Handler, msg))
	}
	if len(class.Handler) > maxHandlerLength {
		errs = append(errs, field.Invalid(path, class.Handler, "must have at most 34 characters"))
	}
	if scheduling := class.Scheduling; scheduling != nil {
		path := field.NewPath("scheduling")
		if scheduling.SeedSelector != nil {
			errs = append(errs, labelSelector(&scheduling.SeedSelector.LabelSelector, path.Child("seedSelector"))...)
		}
		errs = append(errs, tolerations(scheduling.Tolerations, path.Child("tolerations"))...)
	}
	return errs
}
