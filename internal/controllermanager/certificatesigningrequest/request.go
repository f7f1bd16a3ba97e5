package certificatesigningrequest

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	authorizerclient "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

// gardenlet is the gardenlet whose client certificate is requested.
type gardenlet struct {
	bootstraptoken.Gardenlet
	// user is the name that the certificate has.
	user string
}

// subresource is that of CertificateSigningRequests whose creation the author of a request must be allowed.
func (g gardenlet) subresource() string {
	if g.Seed != "" {
		return "seedclient"
	}
	return "shootclient"
}

// gardenletOf returns the gardenlet that a request is for, or why it is not for the client certificate of a gardenlet. gardenadm requests
// the certificate of a self-hosted shoot, too, to connect it.
func gardenletOf(spec *certificatesv1.CertificateSigningRequestSpec) (gardenlet, error) {
	if spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return gardenlet{}, fmt.Errorf("signer is %q", spec.SignerName)
	}
	// A key for RSA may also encipher other keys.
	usages := slices.DeleteFunc(slices.Clone(spec.Usages), func(u certificatesv1.KeyUsage) bool {
		return u == certificatesv1.UsageKeyEncipherment
	})
	slices.Sort(usages)
	if !slices.Equal(usages, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}) {
		return gardenlet{}, fmt.Errorf("usages are %v", spec.Usages)
	}
	block, _ := pem.Decode(spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return gardenlet{}, errors.New("spec.request is no certificate request in PEM format")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return gardenlet{}, fmt.Errorf("parse certificate request: %w", err)
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return gardenlet{}, errors.New("it has alternative names, which a client does not need")
	}
	if len(request.Subject.Organization) != 1 {
		return gardenlet{}, fmt.Errorf("organizations are %q", request.Subject.Organization)
	}
	identity := &user.DefaultInfo{Name: request.Subject.CommonName, Groups: request.Subject.Organization}
	if seed, ok := authorizerclient.OfSeed(identity); ok && seed.Type == authorizerclient.Gardenlet {
		return gardenlet{bootstraptoken.Gardenlet{Seed: seed.Name}, identity.Name}, nil
	}
	if shoot, ok := authorizerclient.OfShoot(identity); ok && shoot.Type != authorizerclient.Extension && shoot.Namespace != "" && shoot.Name != "" {
		return gardenlet{bootstraptoken.Gardenlet{Shoot: shoot.NamespacedName}, identity.Name}, nil
	}
	return gardenlet{}, fmt.Errorf("user %q of group %q is no gardenlet", identity.Name, identity.Groups)
}
