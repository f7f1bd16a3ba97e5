package secrets

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

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

// IssueKubeconfig returns a kubeconfig with a client certificate that the CA in a secret has signed. It is not stored.
func IssueKubeconfig(config *Kubeconfig, ca *corev1.Secret, now time.Time) ([]byte, error) {
	signer, err := signingCAFrom(ca)
	if err != nil {
		return nil, err
	}
	data, err := config.generate(inputs{now: now, ca: signer})
	if err != nil {
		return nil, fmt.Errorf("issue kubeconfig %q: %w", config.Name, err)
	}
	return data[DataKeyKubeconfig], nil
}
