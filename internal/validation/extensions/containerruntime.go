package extensions

import (
	"path"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateContainerRuntime checks a new ContainerRuntime.
func ValidateContainerRuntime(runtime *extensionsv1alpha1.ContainerRuntime) field.ErrorList {
	spec := &runtime.Spec
	errs := validate(&runtime.ObjectMeta, true, &spec.DefaultSpec)
	errs = append(errs, absolutePath(spec.BinaryPath, specPath.Child("binaryPath"))...)
	pool := specPath.Child("workerPool")
	errs = append(errs, required(spec.WorkerPool.Name, pool.Child("name"))...)
	return append(errs, metav1validation.ValidateLabelSelector(&spec.WorkerPool.Selector, metav1validation.LabelSelectorValidationOptions{}, pool.Child("selector"))...)
}

// ValidateContainerRuntimeUpdate checks a changed ContainerRuntime.
func ValidateContainerRuntimeUpdate(runtime, old *extensionsv1alpha1.ContainerRuntime) field.ErrorList {
	if errs, done := frozen(&runtime.ObjectMeta, runtime.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&runtime.ObjectMeta, &old.ObjectMeta, &runtime.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(runtime.Spec.WorkerPool.Name, old.Spec.WorkerPool.Name, specPath.Child("workerPool", "name"))...)
	return append(errs, ValidateContainerRuntime(runtime)...)
}

func absolutePath(value string, fieldPath *field.Path) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(fieldPath, "must be set")}
	case !path.IsAbs(value):
		return field.ErrorList{field.Invalid(fieldPath, value, "must be an absolute path")}
	}
	return nil
}
