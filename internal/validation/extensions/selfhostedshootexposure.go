package extensions

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateSelfHostedShootExposure checks a new SelfHostedShootExposure.
func ValidateSelfHostedShootExposure(exposure *extensionsv1alpha1.SelfHostedShootExposure) field.ErrorList {
	spec := &exposure.Spec
	errs := validate(&exposure.ObjectMeta, true, &spec.DefaultSpec)
	if ref := spec.CredentialsRef; ref != nil {
		path := specPath.Child("credentialsRef")
		errs = append(errs, required(ref.APIVersion, path.Child("apiVersion"))...)
		errs = append(errs, required(ref.Kind, path.Child("kind"))...)
		errs = append(errs, required(ref.Name, path.Child("name"))...)
		errs = append(errs, required(ref.Namespace, path.Child("namespace"))...)
	}
	errs = append(errs, invalid(specPath.Child("port"), spec.Port, validation.IsValidPortNum(int(spec.Port)))...)

	path := specPath.Child("endpoints")
	if len(spec.Endpoints) == 0 {
		errs = append(errs, field.Required(path, "must have at least one endpoint"))
	}
	nodes := map[string]bool{}
	for i, endpoint := range spec.Endpoints {
		path := path.Index(i)
		errs = append(errs, required(endpoint.NodeName, path.Child("nodeName"))...)
		if nodes[endpoint.NodeName] {
			errs = append(errs, field.Duplicate(path.Child("nodeName"), endpoint.NodeName))
		}
		nodes[endpoint.NodeName] = true
		if len(endpoint.Addresses) == 0 {
			errs = append(errs, field.Required(path.Child("addresses"), "must have at least one address"))
		}
		for j, address := range endpoint.Addresses {
			path := path.Child("addresses").Index(j)
			errs = append(errs, required(string(address.Type), path.Child("type"))...)
			errs = append(errs, required(address.Address, path.Child("address"))...)
		}
	}
	return errs
}

// ValidateSelfHostedShootExposureUpdate checks a changed SelfHostedShootExposure.
func ValidateSelfHostedShootExposureUpdate(exposure, old *extensionsv1alpha1.SelfHostedShootExposure) field.ErrorList {
	if errs, done := frozen(&exposure.ObjectMeta, exposure.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&exposure.ObjectMeta, &old.ObjectMeta, &exposure.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	return append(errs, ValidateSelfHostedShootExposure(exposure)...)
}
