// Package operations validates the objects of operations.gardener.cloud.
package operations

import (
	"net/netip"

	"golang.org/x/crypto/ssh"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
)

var metadataPath = field.NewPath("metadata")

// ValidateBastion checks a new Bastion.
func ValidateBastion(bastion *operationsv1alpha1.Bastion) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&bastion.ObjectMeta, true, apivalidation.NameIsDNSLabel, metadataPath)
	return append(errs, bastionSpec(&bastion.Spec, field.NewPath("spec"))...)
}

// ValidateBastionUpdate checks a changed Bastion.
func ValidateBastionUpdate(bastion, old *operationsv1alpha1.Bastion) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&bastion.ObjectMeta, &old.ObjectMeta, metadataPath)
	if bastion.Annotations[constants.GardenCreatedBy] != old.Annotations[constants.GardenCreatedBy] {
		errs = append(errs, field.Invalid(metadataPath.Child("annotations"), bastion.Annotations[constants.GardenCreatedBy], constants.GardenCreatedBy+" cannot be changed"))
	}
	path := field.NewPath("spec")
	if bastion.Spec.ShootRef.Name != "" {
		errs = append(errs, apivalidation.ValidateImmutableField(bastion.Spec.ShootRef.Name, old.Spec.ShootRef.Name, path.Child("shootRef", "name"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(bastion.Spec.SSHPublicKey, old.Spec.SSHPublicKey, path.Child("sshPublicKey"))...)
	if old.Spec.SeedName != nil && bastion.Spec.SeedName != nil {
		errs = append(errs, apivalidation.ValidateImmutableField(bastion.Spec.SeedName, old.Spec.SeedName, path.Child("seedName"))...)
	}
	return append(errs, ValidateBastion(bastion)...)
}

func bastionSpec(spec *operationsv1alpha1.BastionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ShootRef.Name == "" {
		errs = append(errs, field.Required(path.Child("shootRef", "name"), "must be set"))
	} else {
		for _, msg := range apivalidation.NameIsDNSLabel(spec.ShootRef.Name, false) {
			errs = append(errs, field.Invalid(path.Child("shootRef", "name"), spec.ShootRef.Name, msg))
		}
	}
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(spec.SSHPublicKey)); err != nil {
		errs = append(errs, field.Invalid(path.Child("sshPublicKey"), spec.SSHPublicKey, "must be a public key as in authorized_keys"))
	}
	if len(spec.Ingress) == 0 {
		errs = append(errs, field.Invalid(path.Child("ingress"), "", "must have at least one entry"))
	}
	for _, ingress := range spec.Ingress {
		if _, err := netip.ParsePrefix(ingress.IPBlock.CIDR); err != nil {
			errs = append(errs, field.Invalid(path.Child("ingress"), ingress.IPBlock.CIDR, err.Error()))
		}
	}
	return errs
}
