// Package terminator ends TLS connections to kube-apiservers at the gateway, and spreads their requests over the pods.
//
// A connection belongs to one kube-apiserver, that of its server name (SNI), to the end: the Host of a request chooses nothing. The client
// certificate is verified with the client CAs of that kube-apiserver, and its user is passed on in the headers X-Remote-User, X-Remote-Group and
// X-Remote-Extra-*, over connections with a client certificate of the front-proxy CA. These headers are removed from what clients send. Requests
// without a client certificate are passed on over connections without one, on which the kube-apiserver trusts no such header; tokens are left to
// the kube-apiserver.
package terminator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
)

const (
	// maxRequests is how many requests of one kube-apiserver are open in a gateway's pod, watches included. All shoots share its memory.
	maxRequests = 10000
	// maxStreams is how many of them a connection of HTTP/2 has, and maxHeader the size of the headers of one.
	maxStreams, maxHeader = 100, 128 << 10
	// maxCertificates is the length of a client's chain. Each request verifies it.
	maxCertificates = 5
	// headersWithin limits the handshake and the headers of a request, clientIdle a connection without requests. Requests have no limit: watches
	// and the streams of exec and port-forward last as long as both sides like.
	headersWithin, clientIdle = 10 * time.Second, 3 * time.Minute
	// knownWithin is how long a handshake waits for a server name: HAProxy may have the route of a new kube-apiserver a moment earlier.
	knownWithin = time.Second
	// unpublishedWithin is how long new connections arrive after the pod is deleted, and drainedWithin how long requests may last after that.
	unpublishedWithin, drainedWithin = 2 * time.Second, 23 * time.Second
)

// Server is a kube-apiserver.
type Server struct {
	// Hosts are its server names, in lower case.
	Hosts []string
	// Endpoints are the addresses of its ready pods.
	Endpoints []netip.AddrPort
	// Credentials are those of the gateway for it.
	Credentials *Credentials
}

// Terminator serves the connections of kube-apiservers.
type Terminator struct {
	address string
	clock   clock.Clock
	log     logr.Logger
	// details is for the libraries: clients cause many of their messages.
	details *log.Logger
	metrics *metrics

	mu      sync.Mutex
	servers map[types.NamespacedName]*server
	hosts   map[string]*server
	// changed is closed with the next change of the hosts.
	changed chan struct{}
	synced  bool
}

// New returns a Terminator that listens at an address when it is started.
func New(address string, registry prometheus.Registerer, logger logr.Logger, clk clock.Clock) (*Terminator, error) {
	t := &Terminator{
		address: address, clock: clk, log: logger, metrics: newMetrics(),
		details: slog.NewLogLogger(logr.ToSlogHandler(logger.V(1)), slog.LevelInfo),
		servers: map[types.NamespacedName]*server{}, hosts: map[string]*server{}, changed: make(chan struct{}),
	}
	return t, t.metrics.register(registry)
}

// server is a kube-apiserver as long as its route exists. Connections keep it.
type server struct {
	// state is nil when its connections do not end here any more.
	state    atomic.Pointer[state]
	turn     atomic.Uint64
	requests atomic.Int64
}

// state are the settings of a server. It does not change.
type state struct {
	credentials *Credentials
	endpoints   []netip.AddrPort
	users       authenticator.Request
	clients     *tls.Config
	// anonymous is for requests without a user, proxy for those with one.
	anonymous, proxy upstream
}

// next returns the state with other settings. It keeps connections if the credentials are the same.
func (s *state) next(v Server) *state {
	n := &state{credentials: v.Credentials, endpoints: v.Endpoints}
	if s != nil && s.credentials == v.Credentials {
		n.users, n.clients, n.anonymous, n.proxy = s.users, s.clients, s.anonymous, s.proxy
		return n
	}
	n.users = userOf(v.Credentials.clientCAs)
	n.clients = &tls.Config{
		Certificates: []tls.Certificate{v.Credentials.server}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		// Like kube-apiserver: certificates are verified with each request, and a token counts beside one that is not valid.
		ClientAuth: tls.RequestClientCert, ClientCAs: v.Credentials.clientCAs,
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) > maxCertificates {
				return fmt.Errorf("the client presents %d certificates", len(c.PeerCertificates))
			}
			return nil
		},
		// A ticket of one kube-apiserver would be accepted for another.
		SessionTicketsDisabled: true,
	}
	n.anonymous, n.proxy = newUpstream(v.Credentials, nil), newUpstream(v.Credentials, &v.Credentials.proxy)
	return n
}

func (s *state) close() {
	if s != nil {
		s.anonymous.close()
		s.proxy.close()
	}
}

// Set sets the kube-apiservers, by their routes.
func (t *Terminator) Set(servers map[types.NamespacedName]Server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	hosts := map[string]*server{}
	for key, v := range servers {
		s := t.servers[key]
		if s == nil {
			s = &server{}
			t.servers[key] = s
		}
		before := s.state.Load()
		if before == nil || before.credentials != v.Credentials || !slices.Equal(before.endpoints, v.Endpoints) {
			after := before.next(v)
			s.state.Store(after)
			if before != nil && before.credentials != after.credentials {
				before.close()
			}
		}
		for _, host := range v.Hosts {
			hosts[host] = s
		}
	}
	for key, s := range t.servers {
		if _, ok := servers[key]; !ok {
			s.state.Swap(nil).close()
			delete(t.servers, key)
		}
	}
	t.hosts, t.synced = hosts, true
	close(t.changed)
	t.changed = make(chan struct{})
}

// Synced returns an error until the kube-apiservers are set for the first time.
func (t *Terminator) Synced() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.synced {
		return errors.New("the routes are not read yet")
	}
	return nil
}

// find returns the server of a name, or nil and a channel that is closed when there may be one.
func (t *Terminator) find(host string) (*server, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hosts[strings.ToLower(host)], t.changed
}

// await returns the server of a name. It waits a moment for an unknown one.
func (t *Terminator) await(ctx context.Context, host string) *server {
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	for {
		s, changed := t.find(host)
		if s != nil {
			return s
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// NeedLeaderElection says that every replica serves.
func (t *Terminator) NeedLeaderElection() bool { return false }

// Start serves until the context ends, and until requests are done or their time is over.
func (t *Terminator) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", t.address)
	if err != nil {
		return err
	}
	return t.serve(ctx, listener)
}

func (t *Terminator) serve(ctx context.Context, listener net.Listener) error {
	s := &http.Server{
		Handler: t, ReadHeaderTimeout: headersWithin, IdleTimeout: clientIdle,
		TLSConfig:   &tls.Config{GetConfigForClient: t.configure, MinVersion: tls.VersionTLS12},
		ConnContext: withConnection,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout, MaxReceiveBufferPerStream: streamBuffer, MaxConcurrentStreams: maxStreams,
		},
		MaxHeaderBytes: maxHeader,
		ErrorLog:       t.details,
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeTLS(connections{listener}, "", "") }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	<-t.clock.After(unpublishedWithin)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainedWithin)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil { // watches do not end by themselves
		return s.Close()
	}
	return nil
}

// connections are those of a listener, each of which knows its server after the handshake.
type connections struct{ net.Listener }

// connection is one of a client.
type connection struct {
	net.Conn
	server atomic.Pointer[server]
}

// Accept implements net.Listener.
func (c connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn}, nil
}

// configure chooses the server of a connection, and returns what clients of it get.
func (t *Terminator) configure(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	conn, ok := hello.Conn.(*connection)
	if !ok {
		return nil, errors.New("the connection is not one of the listener")
	}
	s := t.await(hello.Context(), hello.ServerName)
	if s == nil {
		return nil, errors.New("the server name is unknown")
	}
	current := s.state.Load()
	if current == nil {
		return nil, errors.New("the server name has just been removed")
	}
	conn.server.Store(s)
	return current.clients, nil
}

// connectionKey is the key of the connection in the context of a request.
type connectionKey struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// serverOf returns the server that was chosen for the connection of a request.
func serverOf(ctx context.Context) *server {
	if conn, ok := ctx.Value(connectionKey{}).(*connection); ok {
		return conn.server.Load()
	}
	return nil
}

// ServeHTTP passes a request on.
func (t *Terminator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := serverOf(r.Context())
	if s == nil {
		t.refuse(w, http.StatusMisdirectedRequest, "the connection has no server name")
		return
	}
	current := s.state.Load()
	if current == nil {
		w.Header().Set("Connection", "close") // the next connection ends at the kube-apiserver
		t.refuse(w, http.StatusServiceUnavailable, "the gateway does not serve this name any more")
		return
	}
	defer s.requests.Add(-1)
	if s.requests.Add(1) > maxRequests {
		t.refuse(w, http.StatusTooManyRequests, "the gateway has too many open requests of this cluster")
		return
	}
	u, accepted := current.user(r)
	if !accepted {
		w.Header().Set("Connection", "close") // the check of the next certificate costs the client a handshake
		t.refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	t.metrics.forwarded(u != nil)
	defer t.metrics.done()
	t.proxy(s, current, u).ServeHTTP(w, r)
}

// user returns the user of the client certificate, or nil if the kube-apiserver decides who it is. A request whose only credential is a certificate
// that is not valid is not accepted, as it is not by kube-apiserver.
func (s *state) user(r *http.Request) (u user.Info, accepted bool) {
	if !presentsCertificate(r) {
		return nil, true
	}
	if response, ok, err := s.users.AuthenticateRequest(r); err == nil && ok && transferable(response.User) {
		return response.User, true
	}
	return nil, presentsToken(r)
}

// proxy returns the handler that passes the request of a user on.
func (t *Terminator) proxy(s *server, current *state, u user.Info) http.Handler {
	to := forward{upstream: current.anonymous, server: s, state: current}
	if u != nil {
		to.upstream = current.proxy
	}
	return &httputil.ReverseProxy{
		Transport: to, FlushInterval: -1, ErrorLog: t.details,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = "https"
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			removeRemote(r.Out.Header)
			if u != nil {
				transport.SetAuthProxyHeaders(r.Out, u.GetName(), "", u.GetGroups(), u.GetExtra())
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the client is gone
			}
			t.log.V(1).Info("Cannot pass a request on", "reason", err.Error())
			t.refuse(w, http.StatusServiceUnavailable, "the kube-apiserver cannot be reached")
		},
	}
}
