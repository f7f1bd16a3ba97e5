package secrets

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// authority is what signs certificates.
type authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer
}

// authorityFrom reads the authority that a secret holds.
func authorityFrom(secret *corev1.Secret) (*authority, error) {
	certPEM := secret.Data[DataKeyCertificateCA]
	pair, err := tls.X509KeyPair(certPEM, secret.Data[DataKeyPrivateKeyCA])
	if err != nil {
		return nil, fmt.Errorf("secret %q holds no certificate authority: %w", secret.Name, err)
	}
	switch key := pair.PrivateKey.(type) {
	case *ecdsa.PrivateKey:
		return &authority{pair.Leaf, certPEM, key}, nil
	case *rsa.PrivateKey:
		return &authority{pair.Leaf, certPEM, key}, nil
	}
	return nil, fmt.Errorf("secret %q: %w", secret.Name, errors.New("its key cannot sign certificates here; use ECDSA or RSA"))
}
