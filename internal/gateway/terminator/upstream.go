package terminator

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// serverName is in the certificate of each kube-apiserver, also in that of the virtual garden.
	serverName = "kubernetes.default.svc"

	// dialTimeout is for one pod; the next one is tried after that.
	dialTimeout, handshakeTimeout = 3 * time.Second, 10 * time.Second
	// A connection is idle for idleTimeout at most. Without an answer to a ping, it is closed, and its requests with it.
	idleTimeout, pingAfter, pingTimeout = 90 * time.Second, 30 * time.Second, 15 * time.Second
	// bodyConnections is how many connections for requests with a body are kept for a pod, and bodyIdle for how long: shorter than the kube-apiserver keeps them.
	bodyConnections, bodyIdle = 64, 30 * time.Second

	// streamBuffer is what is kept of a body that the other side does not read. The window of a connection is more than all its streams take, so
	// that none of them waits for the client of another.
	streamBuffer = 64 << 10
)

// upstream are the connections to the pods of a kube-apiserver with one client certificate, or without.
type upstream struct {
	// many is for requests without a body, many of which share a connection of HTTP/2. bodies is for those with one: a kube-apiserver ends connections of
	// HTTP/2 now and then, and a body cannot be sent again. single is for those that take the connection over, as exec and port-forward do. Both have
	// HTTP/1.1.
	many, bodies, single *http.Transport
}

// newUpstream returns one without connections. The certificate may be nil.
func newUpstream(c *Credentials, certificate *tls.Certificate) upstream {
	config := &tls.Config{RootCAs: c.serverCAs, ServerName: serverName, MinVersion: tls.VersionTLS12}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	transport := func(http2 bool) *http.Transport {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(http2)
		return &http.Transport{
			DialContext:     (&net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}).DialContext,
			TLSClientConfig: config.Clone(), TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout, Protocols: protocols,
			HTTP2: &http.HTTP2Config{
				SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
				MaxReceiveBufferPerStream: streamBuffer,
			},
			// The client and the kube-apiserver agree on compression.
			DisableCompression: true,
		}
	}
	bodies, single := transport(false), transport(false)
	bodies.MaxIdleConnsPerHost, bodies.IdleConnTimeout = bodyConnections, bodyIdle
	single.DisableKeepAlives = true // what a pod of a user has left in a connection must not answer another one
	return upstream{many: transport(true), bodies: bodies, single: single}
}

// close closes the connections when their requests are done.
func (u upstream) close() {
	u.many.CloseIdleConnections()
	u.bodies.CloseIdleConnections()
	u.single.CloseIdleConnections()
}

// forward sends a request to the pod whose turn it is, and to the next one if that cannot be connected.
type forward struct {
	upstream
	server *server
	state  *state
}

// RoundTrip implements http.RoundTripper.
func (f forward) RoundTrip(r *http.Request) (*http.Response, error) {
	transport := f.many
	switch {
	case r.Header.Get("Upgrade") != "":
		transport = f.single
	case r.Body != nil && r.Body != http.NoBody:
		transport = f.bodies
	}
	pods := f.state.endpoints
	if len(pods) == 0 {
		return nil, errNoPods
	}
	turn := f.server.turn.Add(1)
	var errs []error
	for i := range min(uint64(len(pods)), maxAttempts) {
		attempt, url := r.WithContext(r.Context()), *r.URL
		attempt.URL, url.Host = &url, pods[(turn+i)%uint64(len(pods))].String()
		if r.Body != nil { // it is closed with the request of the client, not by an attempt that fails
			attempt.Body = io.NopCloser(r.Body)
		}
		response, err := transport.RoundTrip(attempt)
		if err == nil {
			return response, nil
		}
		errs = append(errs, err)
		// Nothing was sent if there was no connection. Other requests may have an effect already.
		if dial := (*net.OpError)(nil); !errors.As(err, &dial) || dial.Op != "dial" || r.Context().Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// maxAttempts is how many pods are tried.
const maxAttempts = 3

// errNoPods is the state of a kube-apiserver of which no pod is ready.
var errNoPods = errors.New("no pod of the kube-apiserver is ready")
