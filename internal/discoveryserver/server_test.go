package discoveryserver

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr"
	golangjwt "github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/pkg/secrets"
)

// writeCertificate writes a certificate for the host, signed by itself, and its key.
func writeCertificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: testHost}, DNSNames: []string{testHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, dir, "tls.key", private)
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	// A new file takes the place of the old one, as in the volume of a Secret.
	temporary := filepath.Join(dir, name+".new")
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// start runs the server until the end of the test, and returns a client for its host, which has no connection open, and the address.
func start(t *testing.T, dir string, handler http.Handler) (*http.Client, string) {
	t.Helper()
	certificate, err := readFiles(logr.Discard(), keyPair, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- newServer(logr.Discard(), listener, certificate.get, handler).Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ends with: %v", err)
		}
	})
	address := listener.Addr().String()
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // tests look at the certificate themselves
		ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}}, address
}

func get(t *testing.T, c *http.Client, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// verify does what a third party does that trusts an issuer: it reads the OpenID configuration and the keys, and verifies a token.
func verify(t *testing.T, c *http.Client, issuer, audience, token string) (jwt.Claims, error) {
	t.Helper()
	config := map[string]any{}
	response := get(t, c, issuer+"/.well-known/openid-configuration") //nolint:bodyclose // get closes it
	if err := json.NewDecoder(response.Body).Decode(&config); err != nil || response.StatusCode != http.StatusOK {
		return jwt.Claims{}, fmt.Errorf("status %d, %w", response.StatusCode, err)
	}
	if config["issuer"] != issuer {
		return jwt.Claims{}, fmt.Errorf("the configuration is for issuer %v", config["issuer"])
	}
	var algorithms []jose.SignatureAlgorithm
	for _, algorithm := range config["id_token_signing_alg_values_supported"].([]any) {
		algorithms = append(algorithms, jose.SignatureAlgorithm(algorithm.(string)))
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return jwt.Claims{}, err
	}
	keys := jose.JSONWebKeySet{}
	if err := json.NewDecoder(get(t, c, config["jwks_uri"].(string)).Body).Decode(&keys); err != nil { //nolint:bodyclose // get closes it
		return jwt.Claims{}, err
	}
	claims := jwt.Claims{}
	if err := parsed.Claims(keys, &claims); err != nil {
		return claims, err
	}
	return claims, claims.Validate(jwt.Expected{Issuer: issuer, AnyAudience: jwt.Audience{audience}, Time: time.Now()})
}

// sign returns a token as kube-apiserver and gardener-apiserver sign it.
func sign(t *testing.T, key *ecdsa.PrivateKey, issuer, subject string) string {
	t.Helper()
	method := map[elliptic.Curve]golangjwt.SigningMethod{
		elliptic.P256(): golangjwt.SigningMethodES256, elliptic.P384(): golangjwt.SigningMethodES384,
	}[key.Curve]
	token := golangjwt.NewWithClaims(method, golangjwt.RegisteredClaims{
		Issuer: issuer, Subject: subject, Audience: golangjwt.ClaimStrings{"third-party"},
		IssuedAt: golangjwt.NewNumericDate(time.Now()), ExpiresAt: golangjwt.NewNumericDate(time.Now().Add(time.Hour)),
	})
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	id, err := serviceaccountkey.ID(&corev1.Secret{Data: map[string][]byte{secrets.DataKeyRSAPrivateKey: private}})
	if err != nil {
		t.Fatal(err)
	}
	token.Header["kid"] = id
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A third party verifies tokens of a shoot and of a WorkloadIdentity, and no others.
func TestThirdParty(t *testing.T) {
	current, old, foreign := newKey(t), newKey(t), newKey(t)
	identity, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const identityIssuer = "https://" + testHost + "/garden/workload-identity/issuer"
	config, keySet, err := serviceaccountkey.IssuerDocuments(identityIssuer, []crypto.PublicKey{identity.Public()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "config", config)
	write(t, dir, "keys", keySet)
	writeCertificate(t, dir, 1)
	documents, err := readFiles(logr.Discard(), workloadIdentityDocuments(testHost), filepath.Join(dir, "config"), filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	h := newTestHandler(t, interceptor.Funcs{}, project("dev", "garden-dev"), shoot("garden-dev", "one", testUID),
		issuerSecret(t, testIssuer, current.Public(), old.Public()))
	h.workloadIdentity = documents.get
	c, _ := start(t, dir, h.handler())
	for name, tc := range map[string]struct {
		issuer, token, subject string
		fails                  bool
	}{
		"token of a shoot":                   {testIssuer, sign(t, current, testIssuer, "system:serviceaccount:a:b"), "system:serviceaccount:a:b", false},
		"token from before a rotation":       {testIssuer, sign(t, old, testIssuer, "system:serviceaccount:a:b"), "system:serviceaccount:a:b", false},
		"token of a WorkloadIdentity":        {identityIssuer, sign(t, identity, identityIssuer, "gardener.cloud:workloadidentity:a:b:1"), "gardener.cloud:workloadidentity:a:b:1", false},
		"token with another key":             {testIssuer, sign(t, foreign, testIssuer, "a"), "", true},
		"token of another issuer":            {testIssuer, sign(t, identity, identityIssuer, "a"), "", true},
		"token of a shoot that is not there": {testIssuer + "s", sign(t, current, testIssuer+"s", "a"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			claims, err := verify(t, c, tc.issuer, "third-party", tc.token)
			if (err != nil) != tc.fails || err == nil && claims.Subject != tc.subject {
				t.Errorf("subject %q, error %v", claims.Subject, err)
			}
		})
	}
	// A rotation replaces the files, one after the other, then the new key is served.
	rotated := newKey(t)
	config, keySet, err = serviceaccountkey.IssuerDocuments(identityIssuer, []crypto.PublicKey{rotated.Public(), identity.Public()})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "config", config)
	write(t, dir, "keys", []byte("{"))
	if _, err := verify(t, c, identityIssuer, "third-party", sign(t, identity, identityIssuer, "a")); err != nil {
		t.Errorf("while one file is invalid: %v", err)
	}
	write(t, dir, "keys", keySet)
	for _, key := range []*ecdsa.PrivateKey{rotated, identity} {
		if _, err := verify(t, c, identityIssuer, "third-party", sign(t, key, identityIssuer, "a")); err != nil {
			t.Errorf("after the rotation: %v", err)
		}
	}
}

// The certificate is the one of the files, also after they have changed, and the last one that was valid.
func TestCertificateChanges(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	c, _ := start(t, dir, newTestHandler(t, interceptor.Funcs{}).handler())
	serial := func() int64 { return get(t, c, "https://"+testHost+"/").TLS.PeerCertificates[0].SerialNumber.Int64() } //nolint:bodyclose // get closes it
	if got := serial(); got != 1 {
		t.Errorf("serial %d, want 1", got)
	}
	writeCertificate(t, dir, 2)
	if got := serial(); got != 2 {
		t.Errorf("after a change: serial %d, want 2", got)
	}
	write(t, dir, "tls.crt", []byte("broken"))
	if got := serial(); got != 2 {
		t.Errorf("with a broken file: serial %d, want 2", got)
	}
	if err := os.Remove(filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 2 {
		t.Errorf("without a file: serial %d, want 2", got)
	}
	writeCertificate(t, dir, 3)
	if got := serial(); got != 3 {
		t.Errorf("after the repair: serial %d, want 3", got)
	}
}

// Strangers can do little harm.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	c, address := start(t, dir, newTestHandler(t, interceptor.Funcs{}).handler())
	if r := get(t, c, "https://"+testHost+"/"); r.ProtoMajor != 2 || r.TLS.Version < tls.VersionTLS12 { //nolint:bodyclose // get closes it
		t.Errorf("%s over TLS %x", r.Proto, r.TLS.Version)
	}
	for _, maximum := range []uint16{tls.VersionTLS11, tls.VersionTLS10} {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: maximum}}). //nolint:gosec // this is what fails
																		DialContext(t.Context(), "tcp", address)
		if err == nil {
			conn.Close() //nolint:errcheck // it should not be there
			t.Errorf("TLS %x is accepted", maximum)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+testHost+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("A", strings.Repeat("a", 64<<10))
	if response, err := c.Do(request); err == nil {
		response.Body.Close()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("64 KiB of headers: status %d", response.StatusCode)
		}
	}
	s := newServer(logr.Discard(), nil, nil, nil).Server.Server
	if s.ReadHeaderTimeout == 0 || s.ReadTimeout == 0 || s.WriteTimeout == 0 || s.IdleTimeout == 0 {
		t.Error("a client may take its time")
	}
}

func TestFlags(t *testing.T) {
	good := options{hostname: testHost, certFile: "a", keyFile: "b", logLevel: "info", logFormat: "json"}
	for name, tc := range map[string]struct {
		change func(*options)
		want   string
	}{
		"valid":              {func(*options) {}, ""},
		"with a port":        {func(o *options) { o.hostname = testHost + ":8443" }, ""},
		"no host":            {func(o *options) { o.hostname = "" }, "--hostname: must be set"},
		"a URL":              {func(o *options) { o.hostname = "https://a" }, "--hostname=https://a: must be a host name"},
		"an address":         {func(o *options) { o.bindAddress = "here" }, "--bind-address=here: must be an IP address"},
		"no certificate":     {func(o *options) { o.certFile = "" }, "--tls-cert-file: must be set"},
		"half the documents": {func(o *options) { o.configFile = "a" }, "set both or none"},
		"unknown level":      {func(o *options) { o.logLevel = "trace" }, "--log-level=trace: must be one of info, debug, error"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			tc.change(&o)
			err := o.validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
