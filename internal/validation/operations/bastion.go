// Package operations validates the objects of operations.gardener.cloud.
package operations

import (
	"net/netip"

	"golang.org/x/crypto/ssh"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
)

var metadataPath = field.NewPath("metadata")

// ValidateBastion checks a new Bastion.
func ValidateBastion(bastion *operationsv1alpha1.Bastion) field.ErrorList {
	path := field.NewPath("spec")
	return append(bastionBase(bastion, path), ingress(bastion.Spec.Ingress, path.Child("ingress"))...)
}

// ValidateBastionUpdate checks a changed Bastion. Networks are only checked if they change: versions before 1.150 did not limit their number, and finalizers of such
// Bastions have to be removed.
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
	errs = append(errs, bastionBase(bastion, path)...)
	if !apiequality.Semantic.DeepEqual(bastion.Spec.Ingress, old.Spec.Ingress) {
		errs = append(errs, ingress(bastion.Spec.Ingress, path.Child("ingress"))...)
	}
	return errs
}

// bastionBase checks all but the networks.
func bastionBase(bastion *operationsv1alpha1.Bastion, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&bastion.ObjectMeta, true, apivalidation.NameIsDNSLabel, metadataPath)
	spec := &bastion.Spec
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
	return errs
}

// mostNetworks is how many networks and exceptions a bastion may have together.
const mostNetworks = 64

// ingress checks the networks that may connect to a bastion. Exceptions are accepted as the original does; those that are no networks are for the extension to refuse.
func ingress(policies []operationsv1alpha1.BastionIngressPolicy, path *field.Path) field.ErrorList {
	if len(policies) == 0 {
		return field.ErrorList{field.Invalid(path, "", "must have at least one entry")}
	}
	networks := len(policies)
	for _, policy := range policies {
		networks += len(policy.IPBlock.Except)
	}
	if networks > mostNetworks {
		return field.ErrorList{field.TooMany(path, networks, mostNetworks)} // each extension computes with all of them
	}
	var errs field.ErrorList
	for i, policy := range policies {
		path, block := path.Index(i).Child("ipBlock"), policy.IPBlock
		if prefix, err := netip.ParsePrefix(block.CIDR); err != nil || prefix.Addr().Is4In6() {
			errs = append(errs, field.Invalid(path.Child("cidr"), block.CIDR, "must be an IPv4 or IPv6 network in CIDR notation, such as 203.0.113.7/32"))
		}
	}
	return errs
}
