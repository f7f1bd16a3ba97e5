// Package security validates the objects of security.gardener.cloud.
package security

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// credentialKinds are the kinds of objects that a CredentialsBinding can refer to.
var credentialKinds = []string{
	"v1, Secret", "core.gardener.cloud/v1beta1, InternalSecret", "security.gardener.cloud/v1alpha1, WorkloadIdentity",
}

const (
	// minTokenSeconds is the shortest lifetime of a token: shorter ones could expire before they are used.
	minTokenSeconds = 10 * 60
	// maxTokenSeconds is what fits the token's claims.
	maxTokenSeconds = 1 << 32
)

var metadataPath = field.NewPath("metadata")

// providerType is a single provider type, which becomes part of a label.
var providerType = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// ValidateCredentialsBinding checks a new CredentialsBinding.
func ValidateCredentialsBinding(binding *securityv1alpha1.CredentialsBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&binding.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, typeName(binding.Provider.Type, field.NewPath("provider", "type"))...)
	errs = append(errs, credentialsReference(binding.CredentialsRef, field.NewPath("credentialsRef"))...)
	for i, quota := range binding.Quotas {
		path := field.NewPath("quotas").Index(i)
		if quota.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be set"))
		}
		errs = append(errs, namespace(quota.Namespace, path.Child("namespace"))...)
	}
	return errs
}

// ValidateCredentialsBindingUpdate checks a changed CredentialsBinding.
func ValidateCredentialsBindingUpdate(binding, old *securityv1alpha1.CredentialsBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, apivalidation.ValidateImmutableField(binding.Provider, old.Provider, field.NewPath("provider"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(binding.CredentialsRef, old.CredentialsRef, field.NewPath("credentialsRef"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(binding.Quotas, old.Quotas, field.NewPath("quotas"))...)
	return append(errs, ValidateCredentialsBinding(binding)...)
}

// ValidateWorkloadIdentity checks a new WorkloadIdentity.
func ValidateWorkloadIdentity(identity *securityv1alpha1.WorkloadIdentity) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&identity.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	path := field.NewPath("spec")
	if len(identity.Spec.Audiences) == 0 {
		errs = append(errs, field.Required(path.Child("audiences"), "must have at least one entry"))
	}
	for i, audience := range identity.Spec.Audiences {
		path := path.Child("audiences").Index(i)
		if audience == "" {
			errs = append(errs, field.Required(path, "must not be empty"))
		}
		if slices.Contains(identity.Spec.Audiences[:i], audience) {
			errs = append(errs, field.Duplicate(path, audience))
		}
	}
	return append(errs, typeName(identity.Spec.TargetSystem.Type, path.Child("targetSystem", "type"))...)
}

// ValidateWorkloadIdentityUpdate checks a changed WorkloadIdentity.
func ValidateWorkloadIdentityUpdate(identity, old *securityv1alpha1.WorkloadIdentity) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&identity.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, apivalidation.ValidateImmutableField(identity.Spec.TargetSystem.Type, old.Spec.TargetSystem.Type, field.NewPath("spec", "targetSystem", "type"))...)
	if old.Status.Sub != "" {
		errs = append(errs, apivalidation.ValidateImmutableField(identity.Status.Sub, old.Status.Sub, field.NewPath("status", "sub"))...)
	}
	return append(errs, ValidateWorkloadIdentity(identity)...)
}

// ValidateTokenRequest checks a request for a token.
func ValidateTokenRequest(request *securityv1alpha1.TokenRequest) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if seconds := request.Spec.ExpirationSeconds; seconds != nil {
		if *seconds < minTokenSeconds {
			errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *seconds, "must be at least 10 minutes"))
		}
		if *seconds > maxTokenSeconds {
			errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *seconds, "must be at most 2^32 seconds"))
		}
	}
	if object := request.Spec.ContextObject; object != nil {
		path := path.Child("contextObject")
		for name, value := range ordered.Map(map[string]string{"kind": object.Kind, "apiVersion": object.APIVersion, "name": object.Name, "uid": string(object.UID)}) {
			if value == "" {
				errs = append(errs, field.Required(path.Child(name), "must be set"))
			}
		}
		if object.Namespace != nil {
			errs = append(errs, namespace(*object.Namespace, path.Child("namespace"))...)
		}
	}
	return errs
}

func typeName(name string, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "must be set")}
	case !providerType.MatchString(name):
		return field.ErrorList{field.Invalid(path, name, "must be one provider type, of lower case letters, digits, hyphens and dots")}
	}
	return nil
}

func credentialsReference(ref corev1.ObjectReference, path *field.Path) field.ErrorList {
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
	for _, msg := range apivalidation.NameIsDNSSubdomain(ref.Name, false) {
		errs = append(errs, field.Invalid(path.Child("name"), ref.Name, msg))
	}
	errs = append(errs, namespace(ref.Namespace, path.Child("namespace"))...)
	if kind := ref.APIVersion + ", " + ref.Kind; !slices.Contains(credentialKinds, kind) {
		errs = append(errs, field.NotSupported(path, kind, credentialKinds))
	}
	return errs
}

func namespace(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	for _, msg := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}
