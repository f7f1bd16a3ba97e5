// Package security describes the kinds of the group security.gardener.cloud, one file per kind.
package security

import (
	"crypto"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
)

// Settings are what the kinds depend on besides their types. They are about tokens of WorkloadIdentities.
type Settings struct {
	// GardenCache reads objects of the garden API.
	GardenCache client.Reader
	// Clock says when tokens begin and end.
	Clock clock.PassiveClock
	// TokenIssuer is the URL of the issuer. Without one there are no tokens.
	TokenIssuer string
	// TokenKey signs the tokens: an *rsa.PrivateKey or *ecdsa.PrivateKey.
	TokenKey crypto.PrivateKey
	// TokenMinExpiration and TokenMaxExpiration bound how long tokens are valid.
	TokenMinExpiration, TokenMaxExpiration time.Duration
}

var gvk = securityv1alpha1.SchemeGroupVersion.WithKind

// Kinds returns all kinds of the group.
func Kinds(settings Settings) []kind.Any {
	return []kind.Any{credentialsBinding(), workloadIdentity(settings)}
}
