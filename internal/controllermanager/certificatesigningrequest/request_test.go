package certificatesigningrequest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

func TestGardenletOf(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const name, group = "gardener.cloud:system:seed:a", "gardener.cloud:system:seeds"
	for title, tc := range map[string]struct {
		request func(*x509.CertificateRequest)
		csr     func(*certificatesv1.CertificateSigningRequest)
		ok      bool
	}{
		"the first one": {ok: true},
		"with key encipherment": {ok: true, csr: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}},
		"of a self-hosted shoot": {ok: true, request: func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{CommonName: "gardener.cloud:system:shoot:garden-prod:own", Organization: []string{"gardener.cloud:system:shoots"}}
		}},
		"of gardenadm, to connect a self-hosted shoot": {ok: true, request: func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{CommonName: "gardener.cloud:gardenadm:shoot:garden-prod:own", Organization: []string{"gardener.cloud:system:shoots"}}
		}},
		"of a self-hosted shoot without a name": {request: func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{CommonName: "gardener.cloud:system:shoot:garden-prod:", Organization: []string{"gardener.cloud:system:shoots"}}
		}},
		"of a self-hosted shoot, with the group of seeds": {request: func(r *x509.CertificateRequest) { r.Subject.CommonName = "gardener.cloud:system:shoot:garden-prod:own" }},
		"of an extension": {request: func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{
				CommonName: "system:serviceaccount:seed-a:extension-x", Organization: []string{"system:serviceaccounts:seed-a"},
			}
		}},
		"another signer": {csr: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.SignerName = certificatesv1.KubeletServingSignerName
		}},
		"a usage missing": {csr: func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Usages = c.Spec.Usages[:1] }},
		"a usage too many": {csr: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageServerAuth)
		}},
		"no PEM": {csr: func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Request = []byte("request") }},
		"PEM with something else": {csr: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"})
		}},
		"no request in the PEM": {csr: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
		}},
		"another group":         {request: func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }},
		"a further group":       {request: func(r *x509.CertificateRequest) { r.Subject.Organization = []string{group, "system:masters"} }},
		"no group":              {request: func(r *x509.CertificateRequest) { r.Subject.Organization = nil }},
		"another name":          {request: func(r *x509.CertificateRequest) { r.Subject.CommonName = "admin" }},
		"no seed in the name":   {request: func(r *x509.CertificateRequest) { r.Subject.CommonName = "gardener.cloud:system:seed:" }},
		"with a DNS name":       {request: func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes"} }},
		"with an email address": {request: func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@example.com"} }},
	} {
		t.Run(title, func(t *testing.T) {
			request := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{group}}}
			if tc.request != nil {
				tc.request(request)
			}
			der, err := x509.CreateCertificateRequest(rand.Reader, request, key)
			if err != nil {
				t.Fatal(err)
			}
			csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			}}
			if tc.csr != nil {
				tc.csr(csr)
			}
			if _, err := gardenletOf(&csr.Spec); (err == nil) != tc.ok {
				t.Errorf("gardenletOf() = %v, want ok %t", err, tc.ok)
			}
		})
	}
}
