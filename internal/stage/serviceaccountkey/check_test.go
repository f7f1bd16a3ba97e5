package serviceaccountkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/keyutil"
)

const testIssuer = "https://keys.example.com/projects/dev/shoots/1/issuer"

// written returns the documents of an issuer with new keys of each type.
func written(t *testing.T) (config, keySet []byte) {
	t.Helper()
	var public []crypto.PublicKey
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		public = append(public, key.Public())
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	config, keySet, err = IssuerDocuments(testIssuer, append(public, key.Public()))
	if err != nil {
		t.Fatal(err)
	}
	return config, keySet
}

// What is written is valid, and stays as it is.
func TestCheckWrittenDocuments(t *testing.T) {
	config, keySet := written(t)
	checkedConfig, checkedKeySet, err := CheckIssuerDocuments(testIssuer, config, keySet)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{string(config), string(keySet)}, []string{string(checkedConfig), string(checkedKeySet)}); diff != "" {
		t.Errorf("checked documents (-written +checked):\n%s", diff)
	}
	for _, algorithm := range []string{"ES256", "ES384", "ES512", "RS256"} {
		if !strings.Contains(string(config), `"`+algorithm+`"`) {
			t.Errorf("the configuration has no %s: %s", algorithm, config)
		}
	}
}

// Members that are not known are left out, and members that may be absent are filled in. The ID of a key stays.
func TestCheckLeavesOut(t *testing.T) {
	config := `{"issuer": "` + testIssuer + `", "jwks_uri": "` + testIssuer + `/jwks", "authorization_endpoint": "https://elsewhere.example"}`
	keySet := `{"keys": [{"kty": "EC", "kid": "one", "crv": "P-256", "x5u": "https://elsewhere.example",` +
		`"x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}], "more": 1}`
	checkedConfig, checkedKeySet, err := CheckIssuerDocuments(testIssuer, []byte(config), []byte(keySet))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"issuer":"` + testIssuer + `","jwks_uri":"` + testIssuer + `/jwks","response_types_supported":["id_token"],` +
			`"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`,
		`{"keys":[{"use":"sig","kty":"EC","kid":"one","alg":"ES256","crv":"P-256",` +
			`"x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`,
	}
	if diff := cmp.Diff(want, []string{string(checkedConfig), string(checkedKeySet)}); diff != "" {
		t.Errorf("checked documents (-want +got):\n%s", diff)
	}
}

func TestCheckRefuses(t *testing.T) {
	goodConfig, goodKeys := written(t)
	type members = map[string]any
	config := func(change members) []byte { return changed(t, goodConfig, change) }
	// key returns the key set with one key, the elliptic or the RSA one, changed.
	key := func(index int, change members) []byte {
		set := struct{ Keys []json.RawMessage }{}
		if err := json.Unmarshal(goodKeys, &set); err != nil {
			t.Fatal(err)
		}
		return []byte(`{"keys":[` + string(changed(t, set.Keys[index], change)) + `]}`)
	}
	const ec, rsaKey = 0, 3
	for name, tc := range map[string]struct {
		config, keySet []byte
		want           string
	}{
		"no configuration":            {nil, goodKeys, "the OpenID configuration is not valid JSON"},
		"another issuer":              {config(members{"issuer": "https://elsewhere.example"}), goodKeys, `the OpenID configuration is for issuer "https://elsewhere.example"`},
		"the issuer with a slash":     {config(members{"issuer": testIssuer + "/"}), goodKeys, "the OpenID configuration is for issuer"},
		"keys elsewhere":              {config(members{"jwks_uri": "https://elsewhere.example/jwks"}), goodKeys, `jwks_uri of the OpenID configuration is "https://elsewhere.example/jwks"`},
		"no key set":                  {goodConfig, nil, "the key set is not valid JSON"},
		"no keys":                     {goodConfig, []byte(`{"keys":[]}`), "the key set has 0 keys"},
		"many keys":                   {goodConfig, []byte(`{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`), "the key set has 21 keys"},
		"not a key":                   {goodConfig, []byte(`{"keys":["a"]}`), "keys[0] of the key set: it is not a valid JSON Web Key"},
		"the same ID twice":           {goodConfig, twice(key(ec, nil)), "keys[1] of the key set: another key has the same kid"},
		"private elliptic key":        {goodConfig, key(ec, members{"d": "AAAA"}), "it is not public"},
		"private key in another case": {goodConfig, key(ec, members{"D": "AAAA"}), "it is not public"},
		"private RSA key":             {goodConfig, key(rsaKey, members{"p": "AAAA", "q": "AAAA"}), "it is not public"},
		"symmetric key":               {goodConfig, key(ec, members{"kty": "oct", "k": "AAAA"}), "it is not public"},
		"unknown type":                {goodConfig, key(ec, members{"kty": "OKP"}), "its kty must be RSA or EC"},
		"for encryption":              {goodConfig, key(ec, members{"use": "enc"}), "its use must be sig"},
		"without an ID":               {goodConfig, key(ec, members{"kid": ""}), "its kid must have 1 to 256 characters"},
		"no signature":                {goodConfig, key(ec, members{"alg": "none"}), "its alg must be ES256"},
		"symmetric algorithm":         {goodConfig, key(rsaKey, members{"alg": "HS256"}), "its alg must be RS256"},
		"another curve":               {goodConfig, key(ec, members{"crv": "secp256k1"}), "its members crv, x and y"},
		"not on the curve":            {goodConfig, key(ec, members{"x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D5"}), "its members x and y are not a point"},
		"half a point":                {goodConfig, key(ec, members{"y": ""}), "its members crv, x and y"},
		"small RSA key":               {goodConfig, key(rsaKey, members{"n": "AQAB"}), "it has 17 bits"},
		"even exponent":               {goodConfig, key(rsaKey, members{"e": "Ag"}), "its members n and e"},
		"no exponent":                 {goodConfig, key(rsaKey, members{"e": nil}), "its members n and e"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, err := CheckIssuerDocuments(testIssuer, tc.config, tc.keySet)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if a != nil || b != nil {
				t.Errorf("documents are returned: %s %s", a, b)
			}
		})
	}
}

// twice returns a key set with its only key twice.
func twice(keySet []byte) []byte {
	one := strings.TrimSuffix(strings.TrimPrefix(string(keySet), `{"keys":[`), "]}")
	return []byte(`{"keys":[` + one + "," + one + "]}")
}

// changed returns a JSON object with other members; nil removes one.
func changed(t *testing.T, object []byte, change map[string]any) []byte {
	t.Helper()
	all := map[string]any{}
	if err := json.Unmarshal(object, &all); err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The bundle of a key that is rotated has two private keys.
func TestPublicOfBundle(t *testing.T) {
	var bundle []byte
	var want []crypto.PublicKey
	for range 2 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		bundle, want = append(bundle, raw...), append(want, key.Public())
	}
	secret := &corev1.Secret{Data: map[string][]byte{"bundle.key": bundle}}
	got, err := PublicOfBundle(secret)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !want[0].(*ecdsa.PublicKey).Equal(got[0]) || !want[1].(*ecdsa.PublicKey).Equal(got[1]) {
		t.Errorf("%d keys, or other ones", len(got))
	}
	for name, content := range map[string][]byte{
		"nothing": nil, "no key": []byte("secret"), "a broken key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret")}),
	} {
		secret.Name, secret.Data["bundle.key"] = "keys", content
		if _, err := PublicOfBundle(secret); err == nil || err.Error() != `the keys in Secret "keys" are invalid` {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
