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

// signTimeout is how long a request may stay without a certificate, as an operator may have to approve it. Then another one is created.
const signTimeout = 15 * time.Minute

// keyPair is a client certificate and its key, in PEM format.
type keyPair struct{ cert, key []byte }

// request requests a client certificate for a gardenlet, and waits for it.
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
	ctx, cancel = context.WithTimeoutCause(ctx, signTimeout, fmt.Errorf("not signed within %s", signTimeout))
	defer cancel()
	var result csrResult
	err = kube.Await(ctx, c, &certificatesv1.CertificateSigningRequestList{}, func(found []*certificatesv1.CertificateSigningRequest) error {
		if len(found) == 0 {
			return fmt.Errorf("CertificateSigningRequest %q not found", csr.Name)
		}
		result = evaluate(found[0])
		return result.pending
	}, nil, client.MatchingFields{metav1.ObjectNameField: csr.Name})
	if err = errors.Join(err, result.refused); err != nil {
		return nil, fmt.Errorf("wait for the certificate: %w", err)
	}
	return &keyPair{cert: result.certificate, key: key}, nil
}

// newRequest generates a key, and a request for its certificate.
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
		return nil, nil, fmt.Errorf("create certificate request: %w", err)
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

// csrResult is the state of a CertificateSigningRequest: one of the three is set.
type csrResult struct {
	certificate      []byte
	pending, refused error
}

// evaluate returns the state of a CertificateSigningRequest.
func evaluate(csr *certificatesv1.CertificateSigningRequest) csrResult {
	approved := false
	for _, condition := range csr.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateDenied:
			return csrResult{refused: fmt.Errorf("CertificateSigningRequest %q was denied (%s): %s", csr.Name, condition.Reason, condition.Message)}
		case certificatesv1.CertificateFailed:
			return csrResult{refused: fmt.Errorf("CertificateSigningRequest %q could not be signed (%s): %s", csr.Name, condition.Reason, condition.Message)}
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	switch {
	case approved && len(csr.Status.Certificate) > 0:
		return csrResult{certificate: csr.Status.Certificate}
	case approved:
		return csrResult{pending: fmt.Errorf("CertificateSigningRequest %q is approved, but not signed yet", csr.Name)}
	}
	return csrResult{pending: fmt.Errorf("CertificateSigningRequest %q is not approved yet", csr.Name)}
}
