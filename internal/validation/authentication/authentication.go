// Package authentication validates the objects of authentication.gardener.cloud.
package authentication

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
)

const (
	// minSeconds is the shortest lifetime of credentials: shorter ones could expire before they are used.
	minSeconds = 10 * 60
	// maxSeconds is the longest lifetime in a CertificateSigningRequest.
	maxSeconds = 1 << 32
)

// ValidateAdminKubeconfigRequest checks a request for an administrator's kubeconfig.
func ValidateAdminKubeconfigRequest(request *authenticationv1alpha1.AdminKubeconfigRequest) field.ErrorList {
	return lifetime(request.Spec.ExpirationSeconds)
}

// ValidateViewerKubeconfigRequest checks a request for a viewer's kubeconfig.
func ValidateViewerKubeconfigRequest(request *authenticationv1alpha1.ViewerKubeconfigRequest) field.ErrorList {
	return lifetime(request.Spec.ExpirationSeconds)
}

func lifetime(seconds *int64) field.ErrorList {
	path := field.NewPath("spec", "expirationSeconds")
	switch {
	case seconds == nil:
		return field.ErrorList{field.Required(path, "must be set")}
	case *seconds < minSeconds:
		return field.ErrorList{field.Invalid(path, *seconds, "must be at least 10 minutes")}
	case *seconds > maxSeconds:
		return field.ErrorList{field.Invalid(path, *seconds, "must be at most 2^32 seconds")}
	}
	return nil
}
