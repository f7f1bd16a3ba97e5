package certificatesigningrequest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

func TestForSeed(t *testing.T) {
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
		"a renewal": {ok: true, csr: func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username = name }},
		"a new managed seed": {ok: true, csr: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Username = "system:serviceaccount:garden:gardenlet-bootstrap-" + strings.TrimPrefix(name, "gardener.cloud:system:seed:")
		}},
		"a new managed seed, for another": {csr: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Username = "system:serviceaccount:garden:gardenlet-bootstrap-other"
		}},
		// A gardenlet may create ServiceAccounts in the namespace of its seed, and bind them to the role of new gardenlets.
		"a ServiceAccount of another seed": {csr: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Username = "system:serviceaccount:seed-thief:x"
		}},
		"a person":                   {csr: func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username = "alice@example.com" }},
		"a renewal for another seed": {csr: func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username = name + "b" }},
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
				SignerName: certificatesv1.KubeAPIServerClientSignerName, Username: "system:bootstrap:abcdef",
				Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			}}
			if tc.csr != nil {
				tc.csr(csr)
			}
			if err := forSeed(csr); (err == nil) != tc.ok {
				t.Errorf("forSeed() = %v, want ok %t", err, tc.ok)
			}
		})
	}
}
