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

// signingCA is a CA with its private key.
type signingCA struct {
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer
}

// signingCAFrom reads the CA in a secret.
func signingCAFrom(secret *corev1.Secret) (*signingCA, error) {
	certPEM := secret.Data[DataKeyCertificateCA]
	pair, err := tls.X509KeyPair(certPEM, secret.Data[DataKeyPrivateKeyCA])
	if err != nil {
		return nil, fmt.Errorf("read CA from secret %q: %w", secret.Name, err)
	}
	switch key := pair.PrivateKey.(type) {
	case *ecdsa.PrivateKey:
		return &signingCA{pair.Leaf, certPEM, key}, nil
	case *rsa.PrivateKey:
		return &signingCA{pair.Leaf, certPEM, key}, nil
	}
	return nil, fmt.Errorf("read CA from secret %q: %w", secret.Name, errors.New("its key is neither ECDSA nor RSA"))
}
