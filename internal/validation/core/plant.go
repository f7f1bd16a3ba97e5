package core

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ValidatePlant checks a new Plant.
func ValidatePlant(plant *corev1beta1.Plant) field.ErrorList {
	errs := validateName(&plant.ObjectMeta, true)
	path := field.NewPath("spec")
	if plant.Spec.SecretRef.Name == "" {
		errs = append(errs, field.Required(path.Child("secretRef", "name"), "must be set"))
	} else {
		errs = append(errs, referenceName(plant.Spec.SecretRef.Name, path.Child("secretRef", "name"))...)
	}

	names := map[string]bool{}
	for i, endpoint := range plant.Spec.Endpoints {
		path := path.Child("endpoints").Index(i)
		for _, f := range []struct{ name, value string }{{"name", endpoint.Name}, {"url", endpoint.URL}, {"purpose", endpoint.Purpose}} {
			if f.value == "" {
				errs = append(errs, field.Required(path.Child(f.name), "must be set"))
			}
		}
		if names[endpoint.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), endpoint.Name))
		}
		names[endpoint.Name] = true
	}
	return errs
}

// ValidatePlantUpdate checks a changed Plant.
func ValidatePlantUpdate(plant, old *corev1beta1.Plant) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&plant.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, ValidatePlant(plant)...)
}

// ValidatePlantStatusUpdate checks a changed status.
func ValidatePlantStatusUpdate(plant, old *corev1beta1.Plant) field.ErrorList {
	return ValidateStatusMetadata(&plant.ObjectMeta, &old.ObjectMeta)
}
