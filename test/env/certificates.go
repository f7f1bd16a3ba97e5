package env

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"gardener.cloud/gardener/internal/apiserver"
)

// proxyName is whom gardener-apiserver believes when a request comes with the name of a user.
const proxyName = "front-proxy"

// certificates are the credentials of a garden, in files below a directory.
type certificates struct {
	dir                     string
	ca, adminCert, adminKey []byte
	caCert                  *x509.Certificate
	caKey                   *ecdsa.PrivateKey
}

// sign signs a request for a client certificate.
func (c *certificates) sign(request []byte, lifetime time.Duration) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, errors.New("no certificate request in PEM format")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	cert := template(parsed.Subject)
	cert.NotBefore, cert.NotAfter = time.Now(), time.Now().Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, cert, c.caCert, parsed.PublicKey, c.caKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func (c *certificates) path(file string) string { return filepath.Join(c.dir, file) }

// newCertificates makes one authority, and what it signs: for both servers, for the proxy and for the administrator.
func newCertificates(dir string) (*certificates, error) {
	c := &certificates{dir: dir}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := template(pkix.Name{CommonName: "garden"})
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	c.caCert, c.caKey = ca, caKey
	c.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	sign := func(file string, cert *x509.Certificate) (certPEM, keyPEM []byte, err error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		der, err := x509.CreateCertificate(rand.Reader, cert, ca, key.Public(), caKey)
		if err != nil {
			return nil, nil, err
		}
		keyDER, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return nil, nil, err
		}
		certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		keyPEM = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
		return certPEM, keyPEM, errors.Join(os.WriteFile(c.path(file+".crt"), certPEM, 0o600), os.WriteFile(c.path(file+".key"), keyPEM, 0o600))
	}
	server := template(pkix.Name{CommonName: "server"})
	server.DNSNames = []string{"localhost", apiserver.Name + "." + namespace + ".svc"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	if _, _, err := sign("server", server); err != nil {
		return nil, err
	}
	if _, _, err := sign("proxy", template(pkix.Name{CommonName: proxyName})); err != nil {
		return nil, err
	}
	admin := template(pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	if c.adminCert, c.adminKey, err = sign("admin", admin); err != nil {
		return nil, err
	}
	return c, os.WriteFile(c.path("ca.crt"), c.ca, 0o600)
}

// template is a certificate for a day of tests, good for servers and clients.
func template(name pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: name, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}
