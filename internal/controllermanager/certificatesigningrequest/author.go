package certificatesigningrequest

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

// facts are what it depends on whether a user may have the certificate of a gardenlet.
type facts struct {
	// token is the gardenlet that the token is for, nil if the author has no token, or it does not exist any more.
	token *bootstraptoken.Gardenlet
	// seed is the seed whose certificate is requested, nil if it does not exist.
	seed *corev1beta1.Seed
}

// mayRequest returns why a user may not have the certificate of a gardenlet, or nil. Roles do not say for which gardenlet a certificate is, and
// gardenlets may bind the one for new gardenlets: so the author is the gardenlet itself, or what it, and no other gardenlet, starts with.
func mayRequest(user string, requested gardenlet, f facts, now time.Time) error {
	account := serviceaccount.MakeUsername(constants.GardenNamespace, graph.BootstrapServiceAccountName(requested.Seed))
	_, isToken := bootstraptoken.ID(user)
	switch {
	case user == requested.user && requested.Seed != "" && f.seed == nil:
		// Seeds that are deleted lose access: their gardenlets could register again, with what they like in the Seed.
		return fmt.Errorf("user %q may not renew its certificate, as Seed %q does not exist any more", user, requested.Seed)
	case user == requested.user, requested.Seed != "" && user == account:
		return nil
	case !isToken:
		return fmt.Errorf("user %q may not request the certificate of %q", user, requested.user)
	case f.token == nil:
		return fmt.Errorf("the bootstrap token of user %q does not exist any more", user)
	case *f.token == requested.Gardenlet:
		return nil
	case *f.token != bootstraptoken.Gardenlet{}, requested.Seed == "":
		return fmt.Errorf("the description of the bootstrap token of user %q does not say that it is for %q", user, requested.user)
	case f.seed != nil && !expired(f.seed, now):
		// An operator created the token for a new seed. Otherwise it would be good for taking over any other seed as well.
		return fmt.Errorf("the description of the bootstrap token of user %q names no seed, and Seed %q has a valid certificate already", user, f.seed.Name)
	}
	return nil
}

// newRegistration reports whether the gardenlet of a Seed that does not exist starts with bootstrap credentials.
func newRegistration(user string, requested gardenlet, f facts) bool {
	return requested.Seed != "" && f.seed == nil && user != requested.user
}

// expired reports whether the gardenlet of a seed had a certificate that is not valid any more.
func expired(seed *corev1beta1.Seed, now time.Time) bool {
	end := seed.Status.ClientCertificateExpirationTimestamp
	return end != nil && end.Time.Before(now)
}
