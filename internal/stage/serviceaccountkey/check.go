package serviceaccountkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

const (
	// maxKeys is far above what a rotation needs, which is two.
	maxKeys = 20
	// minModulus is the least size of RSA keys that verifiers accept, and maxModulus bounds the time that a verification takes them. Source: RFC 7518.
	minModulus, maxModulus = 2048, 8192
)

// private are the members of a JSON Web Key that only its owner may know. Source: RFC 7518, section 6.
var private = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// CheckIssuerDocuments checks the two documents of an issuer that another component wrote, and returns them as IssuerDocuments writes them. They have to
// be for that issuer, its keys have to be where KeySetURL says, and all of them have to be public keys for signatures. What else is in the documents
// is left out.
func CheckIssuerDocuments(issuer string, config, keySet []byte) (checkedConfig, checkedKeySet []byte, err error) {
	d := discovery{}
	if err := json.Unmarshal(config, &d); err != nil {
		return nil, nil, errors.New("the OpenID configuration is not valid JSON")
	}
	if d.Issuer != issuer {
		return nil, nil, fmt.Errorf("the OpenID configuration is for issuer %q instead of %q", d.Issuer, issuer)
	}
	if want := KeySetURL(issuer); d.KeySetURL != want {
		return nil, nil, fmt.Errorf("jwks_uri of the OpenID configuration is %q instead of %q", d.KeySetURL, want)
	}
	keys, err := readKeySet(keySet)
	if err != nil {
		return nil, nil, err
	}
	return documents(issuer, keys)
}

// readKeySet decodes a JSON Web Key Set. Errors do not quote it, as it may have private keys by mistake.
func readKeySet(raw []byte) ([]webKey, error) {
	set := struct {
		Keys []json.RawMessage `json:"keys"`
	}{}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, errors.New("the key set is not valid JSON")
	}
	if n := len(set.Keys); n == 0 || n > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys: 1 to %d are allowed", n, maxKeys)
	}
	keys := make([]webKey, 0, len(set.Keys))
	for i, raw := range set.Keys {
		k, err := readWebKey(raw)
		if err != nil {
			return nil, fmt.Errorf("keys[%d] of the key set: %w", i, err)
		}
		if slices.ContainsFunc(keys, func(other webKey) bool { return other.ID == k.ID }) {
			return nil, fmt.Errorf("keys[%d] of the key set: another key has the same kid", i)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// readWebKey decodes a public key. It keeps the ID of the key, by which tokens name it.
func readWebKey(raw []byte) (webKey, error) {
	members, given := map[string]json.RawMessage{}, webKey{}
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(raw, &given) != nil {
		return given, errors.New("it is not a valid JSON Web Key")
	}
	for member := range members {
		if slices.Contains(private, strings.ToLower(member)) {
			return given, errors.New("it is not public: it has members of a private or symmetric key")
		}
	}
	if given.ID == "" || len(given.ID) > 256 {
		return given, errors.New("its kid must have 1 to 256 characters")
	}
	if given.Use != "" && given.Use != "sig" {
		return given, errors.New("its use must be sig")
	}
	public, err := given.public()
	if err != nil {
		return given, err
	}
	key, err := newWebKey(public)
	if err != nil {
		return key, err
	}
	if given.Algorithm != "" && given.Algorithm != key.Algorithm {
		return key, fmt.Errorf("its alg must be %s", key.Algorithm)
	}
	key.ID = given.ID
	return key, nil
}

// public decodes the key itself.
func (k webKey) public() (crypto.PublicKey, error) {
	decode := base64.RawURLEncoding.DecodeString
	switch k.Type {
	case "RSA":
		modulus, err := decode(k.Modulus)
		exponent, exponentErr := decode(k.Exponent)
		n, e := new(big.Int).SetBytes(modulus), new(big.Int).SetBytes(exponent)
		if err != nil || exponentErr != nil || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 || e.Bit(0) == 0 || n.Bit(0) == 0 {
			return nil, errors.New("its members n and e are not those of an RSA key")
		}
		if bits := n.BitLen(); bits < minModulus || bits > maxModulus {
			return nil, fmt.Errorf("it has %d bits: an RSA key must have %d to %d", bits, minModulus, maxModulus)
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
	case "EC":
		known, ok := curves[k.Curve]
		x, err := decode(k.X)
		y, yErr := decode(k.Y)
		if !ok || err != nil || yErr != nil || len(x) != len(y) {
			return nil, errors.New("its members crv, x and y are not those of a key for ES256, ES384 or ES512")
		}
		key, err := ecdsa.ParseUncompressedPublicKey(known.curve, slices.Concat([]byte{4}, x, y))
		if err != nil {
			return nil, errors.New("its members x and y are not a point on its curve")
		}
		return key, nil
	}
	return nil, errors.New("its kty must be RSA or EC")
}
