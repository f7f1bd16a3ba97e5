package extensions

import (
	"bytes"

	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/validation/cidr"
)

// ValidateBastion checks a new Bastion.
func ValidateBastion(bastion *extensionsv1alpha1.Bastion) field.ErrorList {
	spec := &bastion.Spec
	errs := validate(&bastion.ObjectMeta, true, &spec.DefaultSpec)
	if len(spec.UserData) == 0 {
		errs = append(errs, field.Required(specPath.Child("userData"), "must be set"))
	}
	path := specPath.Child("ingress")
	if len(spec.Ingress) == 0 {
		errs = append(errs, field.Required(path, "must allow at least one network"))
	}
	for i, policy := range spec.Ingress {
		path := path.Index(i).Child("ipBlock")
		if policy.IPBlock.CIDR == "" {
			errs = append(errs, field.Required(path.Child("cidr"), "must be set"))
			continue
		}
		errs = append(errs, cidr.Validate(cidr.Network{Path: path.Child("cidr"), Value: policy.IPBlock.CIDR})...)
		errs = append(errs, cidr.Validate(cidr.List(path.Child("except"), policy.IPBlock.Except)...)...)
	}
	return errs
}

// ValidateBastionUpdate checks a changed Bastion.
func ValidateBastionUpdate(bastion, old *extensionsv1alpha1.Bastion) field.ErrorList {
	if errs, done := frozen(&bastion.ObjectMeta, bastion.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&bastion.ObjectMeta, &old.ObjectMeta, &bastion.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	if !bytes.Equal(bastion.Spec.UserData, old.Spec.UserData) {
		errs = append(errs, field.Forbidden(specPath.Child("userData"), "field is immutable"))
	}
	return append(errs, ValidateBastion(bastion)...)
}
