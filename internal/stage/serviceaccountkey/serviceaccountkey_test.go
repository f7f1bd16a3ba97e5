package serviceaccountkey

import (
	"crypto"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/keyutil"
)

// rfcKey is the example key of RFC 7517, appendix A.1, in the form that it has in Secrets.
const rfcKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMKBCTNIcKUSDii11ySs3526iDZ8A
iTo7Tu6KPAqv7D7gS2XpJFbZiItSs3m9+9Ue6GnvHw/GW2ZZaVtszggXIw==
-----END PUBLIC KEY-----
`

func TestIssuerDocuments(t *testing.T) {
	parsed, err := keyutil.ParsePublicKeysPEM([]byte(rfcKey))
	if err != nil {
		t.Fatal(err)
	}
	config, keySet, err := IssuerDocuments("https://keys.example.com/projects/dev/shoots/1/issuer", []crypto.PublicKey{parsed[0]})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"issuer":"https://keys.example.com/projects/dev/shoots/1/issuer","jwks_uri":"https://keys.example.com/projects/dev/shoots/1/issuer/jwks",` +
		`"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`
	if diff := cmp.Diff(want, string(config)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	var got map[string][]map[string]string
	if err := json.Unmarshal(keySet, &got); err != nil {
		t.Fatal(err)
	}
	key := got["keys"][0]
	delete(key, "kid")
	if diff := cmp.Diff(map[string]string{
		"use": "sig", "kty": "EC", "alg": "ES256", "crv": "P-256",
		"x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
	}, key); diff != "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
}
