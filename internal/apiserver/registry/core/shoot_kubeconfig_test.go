package core

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// gardenlogin, which users have as their kubectl plugin, takes a key only if it is one PEM block of this type, and a certificate only if it is one block.
func TestGardenloginAcceptsCredentials(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &shootCA{certificate: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-client"}}, key: key}
	now := time.Now()
	certificatePEM, keyPEM, err := ca.sign(pkix.Name{CommonName: "jane"}, now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{"CERTIFICATE": certificatePEM, "RSA PRIVATE KEY": keyPEM} {
		block, rest := pem.Decode(data)
		if block == nil || block.Type != want || len(block.Headers) > 0 || len(rest) > 0 {
			t.Errorf("want one PEM block of type %q without headers, got %d bytes and %d more", want, len(data)-len(rest), len(rest))
		}
	}
	if _, err := tls.X509KeyPair(certificatePEM, keyPEM); err != nil {
		t.Errorf("kubectl cannot use the credentials: %v", err)
	}
}
