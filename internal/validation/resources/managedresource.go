// Package resources validates the objects of resources.gardener.cloud. All functions are pure and return every error at once.
package resources

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// ValidateManagedResource checks a new ManagedResource.
func ValidateManagedResource(mr *resourcesv1alpha1.ManagedResource) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&mr.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, path := &mr.Spec, field.NewPath("spec")

	if spec.Class != nil && *spec.Class == resourcesv1alpha1.AllResourceClass {
		errs = append(errs, field.Invalid(path.Child("class"), *spec.Class, "must name one class"))
	}
	names := sets.New[string]()
	for i, ref := range spec.SecretRefs {
		path := path.Child("secretRefs").Index(i).Child("name")
		switch {
		case ref.Name == "":
			errs = append(errs, field.Required(path, "must be set"))
		case names.Has(ref.Name):
			errs = append(errs, field.Duplicate(path, ref.Name))
		}
		names.Insert(ref.Name)
	}
	errs = append(errs, metav1validation.ValidateLabels(spec.InjectLabels, path.Child("injectLabels"))...)
	for i, kinds := range spec.Equivalences {
		for j, kind := range kinds {
			if kind.Kind == "" {
				errs = append(errs, field.Required(path.Child("equivalences").Index(i).Index(j).Child("kind"), "must be set"))
			}
		}
	}
	return errs
}

// ValidateManagedResourceUpdate checks a changed ManagedResource.
func ValidateManagedResourceUpdate(mr, old *resourcesv1alpha1.ManagedResource) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&mr.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateManagedResource(mr)...)
}
