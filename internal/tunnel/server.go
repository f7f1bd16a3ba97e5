package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// agentWait is how long a request waits for an agent, which connects again within a second.
	agentWait = 5 * time.Second
	// dialTimeout is how long it may take until somebody answers at an address.
	dialTimeout = 10 * time.Second
	// connectTimeout is the end of the whole.
	connectTimeout = agentWait + dialTimeout
)

// Role is what a client of the tunnel may do.
type Role string

const (
	// RoleAgent takes connections into the shoot.
	RoleAgent Role = "agent"
	// RoleAPIServerProxy asks for connections to the kube-apiserver.
	RoleAPIServerProxy Role = "apiserver-proxy"
)

// ServerValues are what a server works with.
type ServerValues struct {
	// ID tells this instance from others, Replicas is how many there are. Agents connect to all of them.
	ID       string
	Replicas int
	// Roles say who may connect to the tunnel as what, by the common names of certificates.
	Roles map[string]Role
	// ProxyClients are the common names of who may ask for connections into the shoot.
	ProxyClients []string
	// APIServer is the address of the kube-apiserver.
	APIServer string
	// Metrics counts. Clock tells the time.
	Metrics *Metrics
	Clock   clock.WithTicker
}

// Server is the end of the tunnel beside the kube-apiserver. Agents and proxies connect to it; whoever may asks it for connections into
// the shoot with HTTP CONNECT.
type Server struct {
	ServerValues
	agents, proxies *peers

	mu       sync.Mutex
	draining bool
	streams  busy
}

// NewServer returns a server.
func NewServer(v ServerValues) *Server {
	return &Server{ServerValues: v, agents: newPeers(), proxies: newPeers()}
}

// ServeTunnel accepts agents and proxies until the listener is closed. The listener hands out TLS connections that verify certificates.
func (s *Server) ServeTunnel(ctx context.Context, listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return fmt.Errorf("accept connection: %w", err)
		}
		go s.serveConn(ctx, conn)
	}
}

func (s *Server) serveConn(ctx context.Context, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // it is over
	log := logf.FromContext(ctx).WithValues("remote", conn.RemoteAddr().String())
	p, role, err := s.welcome(ctx, conn)
	if err != nil {
		// Probes and scanners come here too.
		log.V(1).Info("Refusing connection", "reason", err.Error())
		return
	}
	log = log.WithValues("role", role, "peer", p.id)
	log.Info("Serving connection")
	set := s.proxies
	if role == RoleAgent {
		set = s.agents
	}
	set.add(p)
	s.Metrics.connections.WithLabelValues(string(role)).Inc()
	defer func() {
		set.remove(p)
		s.Metrics.connections.WithLabelValues(string(role)).Dec()
		log.Info("Connection is over")
	}()
	if s.isDraining() {
		go p.drain(ctx)
	}
	p.serve(ctx, s.Clock, set, s.Metrics.echo(role), func(ctx context.Context, stream *yamux.Stream, req request) {
		if role == RoleAPIServerProxy && req.Type == requestAPIServer {
			s.streams.begin()
			defer s.streams.end()
			serveDial(ctx, stream, req.Type, s.Metrics, func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", s.APIServer)
			})
			return
		}
		_ = writeMessage(stream, reply{Code: replyForbidden, Message: "this is not for a " + string(role) + " to ask"})
	})
}

// welcome finds out who has connected.
func (s *Server) welcome(ctx context.Context, conn net.Conn) (*peer, Role, error) {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil, "", errors.New("the connection is not secure")
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, "", err
	}
	role, ok := s.Roles[commonName(secure)]
	if !ok {
		return nil, "", fmt.Errorf("%q has no role", commonName(secure))
	}
	theirs, err := sayHello(conn, hello{ID: s.ID, Replicas: s.Replicas})
	if err != nil {
		return nil, "", err
	}
	p, err := newPeer(conn, theirs.ID, false)
	return p, role, err
}

// serveDial answers a stream with a connection.
func serveDial(ctx context.Context, stream *yamux.Stream, typ requestType, metrics *Metrics, dial func(context.Context) (net.Conn, error)) {
	began := time.Now()
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	conn, err := dial(dialing)
	cancel()
	metrics.dialed(typ, err, time.Since(began))
	if err != nil {
		answer := reply{Code: replyUnreachable, Message: err.Error()}
		if errors.Is(err, errForbidden) {
			answer.Code = replyForbidden
		}
		_ = writeMessage(stream, answer)
		return
	}
	if err := writeMessage(stream, reply{Code: replyOK}); err != nil {
		_ = conn.Close()
		return
	}
	there, back := pipe(stream, conn.(*net.TCPConn)) //nolint:forcetypeassert // only TCP is dialed
	metrics.carried(there, back)
}

// ServeHTTP answers CONNECT. The HTTP server verifies certificates, and does not speak HTTP/2.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || !slices.Contains(s.ProxyClients, r.TLS.PeerCertificates[0].Subject.CommonName) {
		http.Error(w, "the certificate is not one of those that may ask", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		http.Error(w, "only CONNECT is served", http.StatusMethodNotAllowed)
		return
	}
	if _, _, err := net.SplitHostPort(r.Host); err != nil {
		http.Error(w, "the target is no address with a port", http.StatusBadRequest)
		return
	}
	s.streams.begin()
	defer s.streams.end()
	began := s.Clock.Now()
	ctx, cancel := context.WithTimeoutCause(r.Context(), connectTimeout, errors.New("nobody answered in time"))
	stream, err := s.connect(ctx, r.Host)
	cancel()
	s.Metrics.dialed(requestDial, err, s.Clock.Since(began))
	if err != nil {
		logf.FromContext(r.Context()).V(1).Info("Connection into the shoot failed", "target", r.Host, "reason", err.Error())
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = stream.Close()
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	// What the client may have sent already goes first.
	early := make([]byte, buffered.Reader.Buffered())
	_, _ = buffered.Read(early)
	_, err = conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n"))
	if err == nil && len(early) > 0 {
		_, err = stream.Write(early)
	}
	if err != nil {
		_ = stream.Close()
		_ = conn.Close()
		return
	}
	there, back := pipe(conn, stream)
	s.Metrics.carried(there, back)
}

// connect opens a stream to an address in the shoot. Without an agent it waits a moment for one.
func (s *Server) connect(ctx context.Context, address string) (*yamux.Stream, error) {
	if usable, changed := s.agents.usable(); len(usable) == 0 {
		waiting, cancel := context.WithTimeout(ctx, agentWait)
		defer cancel()
		for ; len(usable) == 0; usable, changed = s.agents.usable() {
			select {
			case <-changed:
			case <-waiting.Done():
				return nil, errNobody
			}
		}
	}
	return s.agents.connect(ctx, request{Type: requestDial, Address: address})
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, errForbidden):
		return http.StatusForbidden
	case errors.Is(err, errNobody):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Healthy returns nil if bytes have lately gone to an agent and back.
func (s *Server) Healthy() error {
	if usable, _ := s.agents.usable(); len(usable) == 0 {
		return errNobody
	}
	return nil
}

// Drain tells all clients to use another server for new streams, gives them time to find one, and waits until the old streams have ended or
// the context is done.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	var running sync.WaitGroup
	for _, set := range []*peers{s.agents, s.proxies} {
		running.Go(func() { set.drain(ctx) })
	}
	running.Wait()
	s.streams.wait(ctx)
}

// busy counts what is under way. Unlike a sync.WaitGroup, it may begin something while others wait for the end.
type busy struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // is closed when nothing is left, if somebody waits for that
}

func (b *busy) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
}

func (b *busy) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// wait returns when nothing is under way, or when the context is done.
func (b *busy) wait(ctx context.Context) {
	b.mu.Lock()
	if b.n == 0 {
		b.mu.Unlock()
		return
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
