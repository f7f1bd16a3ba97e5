package frontproxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	testclock "k8s.io/utils/clock/testing"
)

// caBundle is a CAContentProvider with a CA bundle that a test replaces.
type caBundle struct {
	dynamiccertificates.CAContentProvider
	roots *x509.CertPool
}

func (a *caBundle) VerifyOptions() (x509.VerifyOptions, bool) {
	return x509.VerifyOptions{Roots: a.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.roots != nil
}

// A proxy is trusted as long as its certificate is valid, signed by a current CA, and has an allowed name.
func TestAuthenticateRequest(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ca, caKey := newCA(t, start)
	other, _ := newCA(t, start)
	proxy := newCertificate(t, "proxy", ca, caKey, start)
	stranger := newCertificate(t, "stranger", ca, caKey, start)

	type visit struct {
		cert  *x509.Certificate
		roots *x509.Certificate // the current CA, if there is one
		at    time.Duration
		want  string // the user, empty for the next authenticator
	}
	for name, visits := range map[string][]visit{
		"a proxy":                              {{proxy, ca, 0, "jane"}, {proxy, ca, time.Second, "jane"}},
		"another name":                         {{stranger, ca, 0, ""}},
		"no CA":                                {{proxy, nil, 0, ""}},
		"another CA":                           {{proxy, other, 0, ""}},
		"a CA that is replaced":                {{proxy, ca, 0, "jane"}, {proxy, other, time.Second, ""}, {proxy, ca, 2 * time.Second, "jane"}},
		"a CA that is removed":                 {{proxy, ca, 0, "jane"}, {proxy, nil, time.Second, ""}},
		"a certificate that expires meanwhile": {{proxy, ca, 59 * time.Minute, "jane"}, {proxy, ca, time.Hour + time.Second, ""}},
		"a certificate that is long verified":  {{proxy, ca, 0, "jane"}, {proxy, ca, 10 * time.Minute, "jane"}},
		"a connection without a certificate":   {{nil, ca, 0, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			current, clock := &caBundle{}, testclock.NewFakePassiveClock(start)
			next := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil })
			a := New(&authenticatorfactory.RequestHeaderConfig{
				UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"}, UIDHeaders: headerrequest.StaticStringSlice{},
				GroupHeaders: headerrequest.StaticStringSlice{"X-Remote-Group"}, ExtraHeaderPrefixes: headerrequest.StaticStringSlice{},
				AllowedClientNames: headerrequest.StaticStringSlice{"proxy"}, CAContentProvider: current,
			}, next, clock)
			pools := map[*x509.Certificate]*x509.CertPool{nil: nil, ca: poolOf(ca), other: poolOf(other)}
			for i, visit := range visits {
				clock.SetTime(start.Add(visit.at))
				current.roots = pools[visit.roots]
				request := &http.Request{Header: http.Header{"X-Remote-User": {"jane"}}, TLS: &tls.ConnectionState{}}
				if visit.cert != nil {
					request.TLS.PeerCertificates = []*x509.Certificate{visit.cert}
				}
				response, ok, err := a.AuthenticateRequest(request)
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				if ok {
					got = response.User.GetName()
				}
				if got != visit.want {
					t.Errorf("request %d: user %q, want %q", i+1, got, visit.want)
				}
			}
		})
	}
}

func poolOf(cert *x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool
}

func newCA(t *testing.T, from time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: from, NotAfter: from.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return sign(t, template, template, key, key), key
}

func newCertificate(t *testing.T, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey, from time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: from.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, key, caKey)
}

func sign(t *testing.T, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
