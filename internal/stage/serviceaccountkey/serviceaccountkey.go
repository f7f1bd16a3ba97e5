// Package serviceaccountkey reads the keys by which tokens of service accounts are signed, and writes and checks the documents by which
// others verify such tokens. Source: RFC 7517, OpenID Connect Discovery 1.0.
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

// PublicOfBundle returns the public keys of a Secret with the private keys of a credential that are valid, as the secrets manager writes it
// for a key that is rotated.
func PublicOfBundle(secret *corev1.Secret) ([]crypto.PublicKey, error) {
	parsed, err := keyutil.ParsePublicKeysPEM(secret.Data[secrets.DataKeyPrivateKeyBundle]) // it also reads them from private keys
	if err != nil || len(parsed) == 0 {
		return nil, fmt.Errorf("the keys in Secret %q are invalid", secret.Name) // the error may quote them
	}
	keys := make([]crypto.PublicKey, 0, len(parsed))
	for _, key := range parsed {
		keys = append(keys, key)
	}
	return keys, nil
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
	for _, p := range public {
		k, err := newWebKey(p)
		if err != nil {
			return nil, nil, err
		}
		keys = append(keys, k)
	}
	return documents(issuer, keys)
}

func documents(issuer string, keys []webKey) (config, keySet []byte, err error) {
	var algorithms []string
	for _, k := range keys {
		algorithms = append(algorithms, k.Algorithm)
	}
	slices.Sort(algorithms)
	if config, err = json.Marshal(discovery{issuer, KeySetURL(issuer), []string{"id_token"}, []string{"public"}, slices.Compact(algorithms)}); err != nil {
		return nil, nil, err
	}
	keySet, err = json.Marshal(map[string][]webKey{"keys": keys})
	return config, keySet, err
}

// curves are the algorithms of keys by the curve.
var curves = map[string]struct {
	name  string
	curve elliptic.Curve
}{
	"P-256": {"ES256", elliptic.P256()}, "P-384": {"ES384", elliptic.P384()}, "P-521": {"ES512", elliptic.P521()},
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
		algorithm, ok := curves[p.Curve.Params().Name]
		if !ok {
			return k, fmt.Errorf("encode public key: the curve %s is not supported", p.Curve.Params().Name)
		}
		point, err := p.Bytes()
		if err != nil {
			return k, fmt.Errorf("encode public key: %w", err)
		}
		half := (len(point) - 1) / 2 // the first byte says that both coordinates follow
		k.Type, k.Algorithm, k.Curve, k.X, k.Y = "EC", algorithm.name, p.Curve.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
	default:
		return k, fmt.Errorf("encode public key: %T is not supported", public)
	}
	return k, nil
}
