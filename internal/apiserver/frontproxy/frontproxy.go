// Package frontproxy authenticates users whom a proxy names, that is the kube-apiserver in front of gardener-apiserver.
//
// It decides as the authenticator of the API server library does, which verifies the proxy's certificate for each request: a
// sixth of the CPU time of a small request. Here a certificate is verified once a minute, and whenever the CA bundle changes.
package frontproxy

import (
	"crypto/x509"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/utils/clock"
)

const (
	// trustFor is how long a certificate is trusted without being verified again. An expired CA is noticed that much later.
	trustFor = time.Minute
	// maxTrusted is far above the number of connections that kube-apiservers open.
	maxTrusted = 256
)

// Authenticator authenticates requests of trusted proxies by their headers, and passes all others to the next authenticator.
type Authenticator struct {
	config        *authenticatorfactory.RequestHeaderConfig
	headers, next authenticator.Request
	clock         clock.PassiveClock

	mu sync.Mutex
	// trusted are certificates as connections hold them, so that a certificate is that of the same handshake.
	trusted map[*x509.Certificate]trust
}

// trust is the CA bundle that a certificate was verified with, and until when that is valid.
type trust struct {
	roots *x509.CertPool
	until time.Time
}

// New returns an authenticator that goes before another one. Without a configuration of proxies it is that one.
func New(config *authenticatorfactory.RequestHeaderConfig, next authenticator.Request, clk clock.PassiveClock) authenticator.Request {
	if config == nil {
		return next
	}
	headers := headerrequest.NewDynamic(config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes)
	return &Authenticator{
		config: config, headers: group.NewAuthenticatedGroupAdder(headers), next: next, clock: clk, trusted: map[*x509.Certificate]trust{},
	}
}

// AuthenticateRequest implements authenticator.Request.
func (a *Authenticator) AuthenticateRequest(request *http.Request) (*authenticator.Response, bool, error) {
	if a.fromProxy(request) {
		if response, ok, err := a.headers.AuthenticateRequest(request); ok || err != nil {
			return response, ok, err
		}
	}
	return a.next.AuthenticateRequest(request)
}

// fromProxy reports whether a request comes on a connection of a trusted proxy. Certificates with intermediate ones are for
// the next authenticator.
func (a *Authenticator) fromProxy(request *http.Request) bool {
	if request.TLS == nil || len(request.TLS.PeerCertificates) != 1 {
		return false
	}
	cert := request.TLS.PeerCertificates[0]
	if names := a.config.AllowedClientNames.Value(); len(names) > 0 && !slices.Contains(names, cert.Subject.CommonName) {
		return false
	}
	options, ok := a.config.CAContentProvider.VerifyOptions()
	if !ok {
		return false
	}
	now := a.clock.Now()
	a.mu.Lock()
	known, ok := a.trusted[cert]
	a.mu.Unlock()
	if ok && known.roots == options.Roots && now.Before(known.until) {
		return true
	}
	options.CurrentTime = now
	if _, err := cert.Verify(options); err != nil {
		return false
	}
	until := now.Add(trustFor)
	if cert.NotAfter.Before(until) {
		until = cert.NotAfter
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.trusted) >= maxTrusted {
		clear(a.trusted) // open connections are verified again with their next request
	}
	a.trusted[cert] = trust{options.Roots, until}
	return true
}
