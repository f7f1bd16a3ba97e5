package core

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// referenceKinds are the kinds of objects that spec.resources of a shoot or seed can refer to.
var referenceKinds = []string{"v1, Secret", "v1, ConfigMap", "security.gardener.cloud/v1alpha1, WorkloadIdentity"}

// ValidateShootState checks a new ShootState.
func ValidateShootState(state *corev1beta1.ShootState) field.ErrorList {
	return append(validateLabelName(&state.ObjectMeta, true), shootStateSpec(&state.Spec, field.NewPath("spec"))...)
}

// ValidateShootStateUpdate checks a changed ShootState.
func ValidateShootStateUpdate(state, old *corev1beta1.ShootState) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&state.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, ValidateShootState(state)...)
}

func shootStateSpec(spec *corev1beta1.ShootStateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, data := range spec.Gardener {
		if data.Name == "" {
			errs = append(errs, field.Invalid(path.Child("gardener").Index(i).Child("name"), data.Name, "must be set"))
		}
	}
	for i, extension := range spec.Extensions {
		if extension.Kind == "" {
			errs = append(errs, field.Invalid(path.Child("extensions").Index(i).Child("kind"), extension.Kind, "must be set"))
		}
		if extension.Purpose != nil && *extension.Purpose == "" {
			errs = append(errs, field.Invalid(path.Child("extensions").Index(i).Child("purpose"), *extension.Purpose, "must not be empty if it is set"))
		}
		// Errors in references of extensions have the path of the resources of the state, where they are stored.
		for j, resource := range extension.Resources {
			errs = append(errs, crossVersionReference(resource.ResourceRef, referenceKinds, path.Child("resources").Index(j).Child("resourceRef"))...)
		}
	}
	for i, resource := range spec.Resources {
		errs = append(errs, crossVersionReference(resource.CrossVersionObjectReference, referenceKinds, path.Child("resources").Index(i))...)
	}
	return errs
}

// crossVersionReference checks a reference to an object in the same namespace.
func crossVersionReference(ref autoscalingv1.CrossVersionObjectReference, kinds []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.APIVersion == "" {
		errs = append(errs, field.Required(path.Child("apiVersion"), "must be set"))
	}
	if ref.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "must be set"))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must be set"))
	}
	return append(errs, supported(ref.APIVersion+", "+ref.Kind, kinds, path)...)
}
