package kube

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gardener.cloud/gardener/internal/validation/kubeconfig"
	"gardener.cloud/gardener/pkg/destination"
)

// handshakeTimeout is the end of a TLS handshake with a server of a user, and how long a connection to it is kept without requests.
const handshakeTimeout = 30 * time.Second

// ErrRedirected is the error of a client of a user's kubeconfig whose server answers with a redirect.
var ErrRedirected = errors.New("the server redirects to another one, which is not followed")

// ConfigOfUser returns the configuration of a kubeconfig that a user has written. It has to contain all that it uses: it would run programs of this
// process, or read its files. Nor may its server be one that this process alone reaches: blocked, such as destination.Host, returns why not to connect
// to a host, or "". Errors do not quote it. Its clients follow no redirects.
func ConfigOfUser(data []byte, blocked func(host string) string) (*rest.Config, error) {
	checked, errs := kubeconfig.ClientOf(data, nil, blocked)
	if len(errs) > 0 {
		return nil, kubeconfig.Summary(errs)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(checked)
	if err != nil {
		return nil, errors.New("kubeconfig: it has no valid current context")
	}
	refuseRedirects(config)
	return config, nil
}

// refuseRedirects lets requests of clients of a config fail that are answered with a redirect, as API servers never do: it would lead a client in the seed to
// whatever the user's server names.
func refuseRedirects(config *rest.Config) {
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := transport.RoundTrip(request)
			if err == nil && response.StatusCode >= 300 && response.StatusCode < 400 && response.StatusCode != http.StatusNotModified {
				_ = response.Body.Close() // it is not read
				return nil, ErrRedirected
			}
			return response, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// HTTPClientOfUser returns a client for such a configuration. It does not connect to a blocked address either if the name of the server resolves to
// it, unless the environment of the process names a proxy for it, which is the operator's and resolves names itself. Its transport is not one of those
// that client-go keeps forever; CloseIdleConnections of the client closes its connections.
//
// It uses HTTP/1.1 only: the end of a request closes its connection then. With HTTP/2, a server that does not read what it is sent, such as answers to its
// pings, blocks reads of other responses without regard to their contexts. Nor does it ask for compressed responses, so that limits of their size are limits.
func HTTPClientOfUser(config *rest.Config, blocked func(host string) string) (*http.Client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	dialer := destination.Dialer(blocked)
	proxy, err := proxyFor(config.Host)
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		dialer = destination.Dialer(func(string) string { return "" }) // all connections are to the proxy
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	transport := &http.Transport{
		Proxy: http.ProxyURL(proxy), TLSClientConfig: tls, DialContext: dialer.DialContext,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: handshakeTimeout, Protocols: &protocols, DisableCompression: true,
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: closable{wrapped, transport}, Timeout: config.Timeout}, nil
}

// proxyFor returns the proxy for a server according to the environment, or nil if there is none.
func proxyFor(server string) (*url.URL, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, errors.New("the server is not a URL") // the error quotes it
	}
	return httpproxy.FromEnvironment().ProxyFunc()(target)
}

// closable lets http.Client.CloseIdleConnections reach a transport through its wrappers.
type closable struct {
	http.RoundTripper
	inner *http.Transport
}

// CloseIdleConnections closes the connections that no request uses.
func (c closable) CloseIdleConnections() { c.inner.CloseIdleConnections() }
