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
	// agentWait is how long a request waits for an agent, which reconnects within a second.
	agentWait = 5 * time.Second
	// dialTimeout limits the dial of an address by an agent or a server.
	dialTimeout = 10 * time.Second
	// connectTimeout limits both together.
	connectTimeout = agentWait + dialTimeout
)

// Role is what a client of the tunnel may do.
type Role string

const (
	// RoleAgent dials the networks of the shoot for servers.
	RoleAgent Role = "agent"
	// RoleAPIServerProxy requests connections to the kube-apiserver.
	RoleAPIServerProxy Role = "apiserver-proxy"
)

// ServerValues are what a server needs.
type ServerValues struct {
	// ID identifies this instance, and Replicas is the number of instances. Clients connect to all of them.
	ID       string
	Replicas int
	// Roles are the roles of clients of the tunnel, by the common names of their certificates.
	Roles map[string]Role
	// ProxyClients are the common names of clients that may request connections into the shoot: the kube-apiserver.
	ProxyClients []string
	// APIServer is the address of the kube-apiserver, with a port.
	APIServer string
	// Limits are those of clients.
	Limits Limits
	// Metrics are updated, and Clock is used for intervals and durations. Both are required.
	Metrics *Metrics
	Clock   clock.WithTicker
}

// Server is the end of the tunnel in the control plane. Agents and proxies connect to it; the kube-apiserver requests connections into the
// shoot with HTTP CONNECT.
type Server struct {
	ServerValues
	agents, proxies *peers
	handshakes      handshakes
	// connected are the numbers of authenticated connections.
	connected map[Role]*counter

	mu       sync.Mutex
	draining bool
	streams  busy
}

// NewServer returns a server.
func NewServer(v ServerValues) *Server {
	v.Limits = v.Limits.withDefaults()
	return &Server{
		ServerValues: v, agents: newPeers(), proxies: newPeers(), connected: map[Role]*counter{RoleAgent: {}, RoleAPIServerProxy: {}},
	}
}

// ServeTunnel accepts agents and proxies until the listener is closed. The listener has to return TLS connections that verify client certificates.
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
	p, role, err := s.handshake(ctx, conn)
	if errors.Is(err, errBusy) {
		s.Metrics.refuse(refusedConnection)
	}
	if err != nil {
		// Probes and scanners connect too, so this is not at level Info.
		log.V(1).Info("Refusing connection", "reason", err.Error())
		return
	}
	defer s.connected[role].give()
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
		log.Info("Connection closed")
	}()
	if s.isDraining() {
		go p.drain(ctx)
	}
	p.serve(ctx, s.Clock, set, s.Metrics.echo(role), func(ctx context.Context, stream *yamux.Stream, req request) {
		if role == RoleAPIServerProxy && req.Type == requestAPIServer {
			if !s.streams.beginUnder(s.Limits.Streams) {
				s.Metrics.refuse(refusedStream)
				refuse(stream, s.tooManyStreams().Error())
				return
			}
			defer s.streams.end()
			serveDial(ctx, stream, req.Type, s.Metrics, func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", s.APIServer)
			})
			return
		}
		_ = writeMessage(stream, reply{Code: replyForbidden, Message: "not allowed for the role " + string(role)})
	})
}

// tooManyStreams is the error if Limits.Streams is reached.
func (s *Server) tooManyStreams() error {
	return limitError("connections through the tunnel", s.Limits.Streams, flagMaxStreams)
}

// admit counts a connection of a role, or returns errBusy if there are too many.
func (s *Server) admit(role Role) error {
	limit, flag := s.Limits.APIServerProxies, flagMaxProxies
	if role == RoleAgent {
		limit, flag = s.Limits.Agents, flagMaxAgents
	}
	if s.connected[role].take(limit) {
		return nil
	}
	return limitError("connections of the role "+string(role), limit, flag)
}

// handshake authenticates a client, exchanges the first messages, and counts the connection.
func (s *Server) handshake(ctx context.Context, conn net.Conn) (*peer, Role, error) {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil, "", errors.New("the connection does not use TLS")
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if s.handshakes.add(secure.NetConn(), s.Limits.Handshakes) {
		s.Metrics.refuse(refusedHandshake)
	}
	defer s.handshakes.remove(secure.NetConn())
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, "", err
	}
	role, ok := s.Roles[commonName(secure)]
	if !ok {
		return nil, "", fmt.Errorf("%q has no role", commonName(secure))
	}
	if err := s.admit(role); err != nil {
		_ = conn.SetDeadline(time.Now().Add(refusalTimeout))
		_ = writeMessage(conn, hello{Version: protocolVersion, Error: err.Error()})
		return nil, "", err
	}
	theirs, err := exchangeHellos(conn, hello{ID: s.ID, Replicas: s.Replicas})
	if err != nil {
		s.connected[role].give()
		return nil, "", err
	}
	window, limits := uint32(uploadWindow), streamLimits{opened: s.Limits.StreamsPerConnection, total: 2 * s.Limits.StreamsPerConnection, refused: s.Metrics.refuse}
	if role == RoleAgent {
		window, limits.opened, limits.total = streamWindow, agentStreams, agentStreams+2*s.Limits.Streams
	}
	p, err := newPeer(conn, theirs.ID, false, window, limits)
	if err != nil {
		s.connected[role].give()
		return nil, "", err
	}
	return p, role, nil
}

// serveDial dials a connection, replies, and carries bytes between the stream and the connection.
func serveDial(ctx context.Context, stream *yamux.Stream, typ requestType, metrics *Metrics, dial func(context.Context) (net.Conn, error)) {
	began := time.Now()
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	conn, err := dial(dialing)
	cancel()
	metrics.dialed(typ, err, time.Since(began))
	if err != nil {
		response := reply{Code: replyUnreachable, Message: err.Error()}
		if errors.Is(err, errForbidden) {
			response.Code = replyForbidden
		}
		_ = writeMessage(stream, response)
		return
	}
	if err := writeMessage(stream, reply{Code: replyOK}); err != nil {
		_ = conn.Close()
		return
	}
	there, back := pipe(stream, conn.(*net.TCPConn)) //nolint:forcetypeassert // only TCP is dialed
	metrics.carried(there, back)
}

// ServeHTTP serves CONNECT. The HTTP server has to verify client certificates, and must not offer HTTP/2.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || !slices.Contains(s.ProxyClients, r.TLS.PeerCertificates[0].Subject.CommonName) {
		http.Error(w, "the client certificate is not allowed", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		http.Error(w, "only CONNECT is allowed", http.StatusMethodNotAllowed)
		return
	}
	if _, _, err := net.SplitHostPort(r.Host); err != nil {
		http.Error(w, "the target is not an address with a port", http.StatusBadRequest)
		return
	}
	if !s.streams.beginUnder(s.Limits.Streams) {
		s.Metrics.refuse(refusedStream)
		http.Error(w, s.tooManyStreams().Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.streams.end()
	began := s.Clock.Now()
	ctx, cancel := context.WithTimeoutCause(r.Context(), connectTimeout, errors.New("timed out"))
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
	// The client may have sent bytes of the stream already.
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

// connect opens a stream to an address in the shoot. If no agent is connected it waits for one, for agentWait.
func (s *Server) connect(ctx context.Context, address string) (*yamux.Stream, error) {
	if usable, changed := s.agents.usable(); len(usable) == 0 {
		waiting, cancel := context.WithTimeout(ctx, agentWait)
		defer cancel()
		for ; len(usable) == 0; usable, changed = s.agents.usable() {
			select {
			case <-changed:
			case <-waiting.Done():
				return nil, errDisconnected
			}
		}
	}
	return s.agents.connect(ctx, request{Type: requestDial, Address: address})
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, errForbidden):
		return http.StatusForbidden
	case errors.Is(err, errDisconnected), errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Healthy returns nil if an echo of an agent came back lately.
func (s *Server) Healthy() error {
	if usable, _ := s.agents.usable(); len(usable) == 0 {
		return errDisconnected
	}
	return nil
}

// Drain requests that all clients use another server for new streams, waits until they have one or replacementTimeout is over, and then
// until the streams have ended or the context is done.
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
