package credentials

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// signedWithin is how long a request may stay without an answer. People may have to approve it. Then there is a new one.
const signedWithin = 15 * time.Minute

// keyPair is a client certificate and its key, in PEM format.
type keyPair struct{ cert, key []byte }

// request asks the garden for a client certificate for a gardenlet, and waits for it.
func request(ctx context.Context, garden *rest.Config, seedName string, lifetime *metav1.Duration) (*keyPair, error) {
	c, err := client.NewWithWatch(garden, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the garden: %w", err)
	}
	key, csr, err := newRequest(seedName, lifetime)
	if err != nil {
		return nil, err
	}
	createCtx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := c.Create(createCtx, csr); err != nil {
		return nil, fmt.Errorf("create CertificateSigningRequest: %w", err)
	}
	logf.FromContext(ctx).Info("Waiting for the certificate", "certificateSigningRequest", csr.Name)
	ctx, cancel = context.WithTimeoutCause(ctx, signedWithin, fmt.Errorf("not answered within %s", signedWithin))
	defer cancel()
	var answer verdict
	err = kube.Await(ctx, c, &certificatesv1.CertificateSigningRequestList{}, func(found []*certificatesv1.CertificateSigningRequest) error {
		if len(found) == 0 {
			return fmt.Errorf("CertificateSigningRequest %q is not there", csr.Name)
		}
		answer = judge(found[0])
		return answer.pending
	}, nil, client.MatchingFields{"metadata.name": csr.Name})
	if err = errors.Join(err, answer.refused); err != nil {
		return nil, fmt.Errorf("wait for the certificate: %w", err)
	}
	return &keyPair{cert: answer.certificate, key: key}, nil
}

// newRequest makes a key, and a request for a certificate of it.
func newRequest(seedName string, lifetime *metav1.Duration) (key []byte, csr *certificatesv1.CertificateSigningRequest, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: constants.SeedUserNamePrefix + seedName, Organization: []string{constants.SeedsGroup}},
	}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate request: %w", err)
	}
	csr = &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "seed-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	if lifetime != nil {
		csr.Spec.ExpirationSeconds = new(int32(lifetime.Seconds()))
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), csr, nil
}

// verdict is what became of a request: one of the three is set.
type verdict struct {
	certificate      []byte
	pending, refused error
}

// judge tells what became of a request.
func judge(csr *certificatesv1.CertificateSigningRequest) verdict {
	approved := false
	for _, condition := range csr.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateDenied:
			return verdict{refused: fmt.Errorf("CertificateSigningRequest %q was denied (%s): %s", csr.Name, condition.Reason, condition.Message)}
		case certificatesv1.CertificateFailed:
			return verdict{refused: fmt.Errorf("CertificateSigningRequest %q could not be signed (%s): %s", csr.Name, condition.Reason, condition.Message)}
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	switch {
	case approved && len(csr.Status.Certificate) > 0:
		return verdict{certificate: csr.Status.Certificate}
	case approved:
		return verdict{pending: fmt.Errorf("CertificateSigningRequest %q is approved, but not signed yet", csr.Name)}
	}
	return verdict{pending: fmt.Errorf("CertificateSigningRequest %q is not approved yet", csr.Name)}
}
