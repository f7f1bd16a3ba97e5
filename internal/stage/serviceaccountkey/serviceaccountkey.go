// Package serviceaccountkey reads the keys by which tokens of service accounts are signed, and writes the documents by which others
// verify such tokens. Source: RFC 7517, OpenID Connect Discovery 1.0.
package serviceaccountkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/keyutil"

	"gardener.cloud/gardener/pkg/secrets"
)

// KeySetURL is where the keys of an issuer are served.
func KeySetURL(issuer string) string { return issuer + "/jwks" }

// ID returns the ID of the service account key in a Secret, which tokens that it signs name.
func ID(secret *corev1.Secret) (string, error) {
	public, err := Public(secret)
	if err != nil {
		return "", err
	}
	key, err := newWebKey(public)
	return key.ID, err
}

// Public returns the public key of the service account key in a Secret.
func Public(secret *corev1.Secret) (crypto.PublicKey, error) {
	private, err := keyutil.ParsePrivateKeyPEM(secret.Data[secrets.DataKeyRSAPrivateKey])
	if err != nil {
		return nil, fmt.Errorf("the key in Secret %q is invalid", secret.Name) // the error may quote it
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key in Secret %q cannot sign", secret.Name)
	}
	return signer.Public(), nil
}

// Signs reports whether a token says that it is signed by the key with an ID.
func Signs(id, token string) bool {
	encoded, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	header := webKey{}
	return err == nil && json.Unmarshal(raw, &header) == nil && header.ID == id
}

// discovery is the document by which clients find the keys of an issuer. Source: OpenID Connect Discovery 1.0.
type discovery struct {
	Issuer        string   `json:"issuer"`
	KeySetURL     string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// webKey is a public key as RFC 7517 writes it.
type webKey struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	Modulus   string `json:"n,omitempty"`
	Exponent  string `json:"e,omitempty"`
}

// IssuerDocuments returns the two documents that an issuer serves: its OpenID configuration, which says where its keys are, and the keys.
func IssuerDocuments(issuer string, public []crypto.PublicKey) (config, keySet []byte, err error) {
	keys := make([]webKey, 0, len(public))
	var algorithms []string
	for _, p := range public {
		k, err := newWebKey(p)
		if err != nil {
			return nil, nil, err
		}
		keys, algorithms = append(keys, k), append(algorithms, k.Algorithm)
	}
	slices.Sort(algorithms)
	if config, err = json.Marshal(discovery{issuer, KeySetURL(issuer), []string{"id_token"}, []string{"public"}, slices.Compact(algorithms)}); err != nil {
		return nil, nil, err
	}
	keySet, err = json.Marshal(map[string][]webKey{"keys": keys})
	return config, keySet, err
}

// newWebKey encodes a public key. Its ID is the one that the kube-apiserver writes into tokens: the checksum of the key in DER.
func newWebKey(public crypto.PublicKey) (webKey, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return webKey{}, fmt.Errorf("encode public key: %w", err)
	}
	sum, encode := sha256.Sum256(der), base64.RawURLEncoding.EncodeToString
	k := webKey{Use: "sig", ID: encode(sum[:])}
	switch p := public.(type) {
	case *rsa.PublicKey:
		k.Type, k.Algorithm, k.Modulus, k.Exponent = "RSA", "RS256", encode(p.N.Bytes()), encode(big.NewInt(int64(p.E)).Bytes())
	case *ecdsa.PublicKey:
		if p.Curve != elliptic.P256() {
			return k, errors.New("encode public key: its curve is not P-256")
		}
		point, err := p.Bytes()
		if err != nil {
			return k, fmt.Errorf("encode public key: %w", err)
		}
		half := (len(point) - 1) / 2 // the first byte says that both coordinates follow
		k.Type, k.Algorithm, k.Curve, k.X, k.Y = "EC", "ES256", "P-256", encode(point[1:1+half]), encode(point[1+half:])
	default:
		return k, fmt.Errorf("encode public key: %T is not supported", public)
	}
	return k, nil
}
