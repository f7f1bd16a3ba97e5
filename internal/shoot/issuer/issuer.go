// Package issuer knows the managed issuers of service account tokens, which are served for all shoots of a landscape by one host.
package issuer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// HostnameKey has the host of all managed issuers, in the Secret of the landscape for them.
const HostnameKey = "hostname"

// OpenIDConfigKey and KeySetKey have the two documents of the managed issuer of a shoot, in its Secret of SecretName.
const OpenIDConfigKey, KeySetKey = "openid-config", "jwks"

// Managed reports whether a Shoot asks for a managed issuer.
func Managed(shoot *corev1beta1.Shoot) bool {
	return shoot.Annotations[constants.AuthenticationIssuer] == constants.AuthenticationIssuerManaged
}

// URL returns the URL of the managed issuer of a shoot.
func URL(host, project string, shoot types.UID) string {
	return fmt.Sprintf("https://%s/projects/%s/shoots/%s/issuer", host, project, shoot)
}

// SecretName returns the name of the Secret with the documents of the managed issuer of a shoot, in namespace gardener-system-shoot-issuer.
func SecretName(project string, shoot types.UID) string { return project + "--" + string(shoot) }

// WorkloadIdentityURL returns the URL of the issuer of WorkloadIdentity tokens of a garden, which the host of managed issuers serves too.
func WorkloadIdentityURL(host string) string {
	return fmt.Sprintf("https://%s/garden/workload-identity/issuer", host)
}
