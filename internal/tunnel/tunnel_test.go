package tunnel

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/yamux"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

const host = "tunnel.example.com"

// testCA signs certificates.
type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newTestCA(t testing.TB) *testCA {
	t.Helper()
	a := &testCA{pool: x509.NewCertPool()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(raw)
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a certificate for servers and clients.
func (a *testCA) issue(t testing.TB, commonName string) tls.Certificate {
	t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: commonName}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func (a *testCA) server(t testing.TB) *tls.Config {
	t.Helper()
	return &tls.Config{
		Certificates: []tls.Certificate{a.issue(t, "server")}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	}
}

func (a *testCA) client(t testing.TB, commonName string) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t, commonName)}, RootCAs: a.pool, ServerName: host, MinVersion: tls.VersionTLS13}
}

// testServer is a server with its two listeners.
type testServer struct {
	t             testing.TB
	ca            *testCA
	server        *Server
	tunnel, proxy string
	stop          func()
}

func newMetrics(t testing.TB) *Metrics {
	t.Helper()
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func start(t testing.TB, change func(*ServerValues)) *testServer {
	t.Helper()
	return startAt(t, newTestCA(t), "127.0.0.1:0", change)
}

func startAt(t testing.TB, a *testCA, address string, change func(*ServerValues)) *testServer {
	t.Helper()
	v := ServerValues{
		ID: "server-0", Replicas: 1, Roles: map[string]Role{"agent": RoleAgent, "node": RoleAPIServerProxy}, ProxyClients: []string{"kube-apiserver"},
		Metrics: newMetrics(t), Clock: clock.RealClock{},
	}
	if change != nil {
		change(&v)
	}
	s := &testServer{t: t, ca: a, server: NewServer(v)}
	tunnel, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // it outlives the test by its cleanup
	web := &http.Server{Handler: s.server, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	s.tunnel, s.proxy = tunnel.Addr().String(), proxy.Addr().String()
	var running sync.WaitGroup
	running.Go(func() { _ = s.server.ServeTunnel(ctx, tls.NewListener(tunnel, s.ca.server(t))) })
	running.Go(func() { _ = web.Serve(tls.NewListener(proxy, s.ca.server(t))) })
	s.stop = func() { cancel(); _ = tunnel.Close(); _ = web.Close(); running.Wait() }
	t.Cleanup(s.stop)
	return s
}

// agent runs an agent for the network of this machine.
func (s *testServer) agent(id, server string) (*Links, func()) {
	s.t.Helper()
	return s.run(NewAgent(AgentValues{
		LinksValues: LinksValues{Address: server, TLS: s.ca.client(s.t, "agent"), ID: id, Metrics: newMetrics(s.t), Clock: clock.RealClock{}},
		Networks:    []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}))
}

func (s *testServer) run(l *Links) (*Links, func()) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // it outlives the test by its cleanup
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	stop := func() { cancel(); <-ended }
	s.t.Cleanup(stop)
	return l, stop
}

// connect requests a connection as the kube-apiserver does.
func (s *testServer) connect(target, commonName string) (net.Conn, int, error) {
	s.t.Helper()
	conn, err := tls.Dial("tcp", s.proxy, s.ca.client(s.t, commonName))
	if err != nil {
		return nil, 0, err
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // so that the test does not hang
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
		return nil, 0, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil) //nolint:bodyclose // the connection goes on
	if err != nil {
		return nil, 0, err
	}
	if response.StatusCode != http.StatusOK {
		_ = conn.Close()
		return nil, response.StatusCode, nil
	}
	if reader.Buffered() > 0 {
		return nil, 0, errors.New("bytes were received before the client has sent any")
	}
	_ = conn.SetDeadline(time.Time{})
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn, response.StatusCode, nil
}

func (s *testServer) mustConnect(target string) net.Conn {
	s.t.Helper()
	conn, status, err := s.connect(target, "kube-apiserver")
	if err != nil || conn == nil {
		s.t.Fatalf("no connection to %s: status %d, %v", target, status, err)
	}
	return conn
}

// echoServer sends back what it receives, until the end.
func echoServer(t testing.TB) string {
	t.Helper()
	return serve(t, func(conn *net.TCPConn) { _, _ = io.Copy(conn, conn) })
}

func serve(t testing.TB, handle func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()          //nolint:errcheck // everything was sent
				handle(conn.(*net.TCPConn)) //nolint:forcetypeassert // it is TCP
			}()
		}
	}()
	return listener.Addr().String()
}

// ask sends a text to an echo server, and checks the response. It may be called in any goroutine.
func ask(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // so that the test does not hang
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err)
		return
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Errorf("got %q, %v", got, err)
	}
}

// awaitPeers waits until n peers are usable, and fails if that takes longer than within.
func awaitPeers(t testing.TB, set *peers, n int, within time.Duration) {
	t.Helper()
	end := time.After(within)
	for {
		usable, changed := set.usable()
		if len(usable) == n {
			return
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("%d instead of %d are usable after %s", len(usable), n, within)
		}
	}
}

func TestConnect(t *testing.T) {
	s := start(t, nil)
	s.agent("agent-0", s.tunnel)
	awaitPeers(t, s.server.agents, 1, time.Minute)
	echo := echoServer(t)
	t.Run("both directions", func(t *testing.T) { ask(t, s.mustConnect(echo), "hello") })
	t.Run("one direction ends", func(t *testing.T) {
		sent := make([]byte, 8<<20)
		_, _ = rand.Read(sent)
		conn := s.mustConnect(echo)
		go func() {
			_, _ = conn.Write(sent)
			_ = conn.(*tls.Conn).CloseWrite() //nolint:forcetypeassert // it is TLS
		}()
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d of %d bytes came back, %v", len(got), len(sent), err)
		}
	})
	t.Run("many connections", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 100 {
			conn := s.mustConnect(echo)
			all.Go(func() { ask(t, conn, strings.Repeat(fmt.Sprint(i), 10000)) })
		}
		all.Wait()
	})
	for name, tc := range map[string]struct {
		target, commonName string
		want               int
	}{
		"an address outside of the networks": {"192.0.2.1:443", "kube-apiserver", http.StatusForbidden},
		"an address without a port":          {"127.0.0.1", "kube-apiserver", http.StatusBadRequest},
		"an invalid port":                    {"127.0.0.1:x", "kube-apiserver", http.StatusBadRequest},
		"no listener":                        {"127.0.0.1:1", "kube-apiserver", http.StatusBadGateway},
		"a client that is not allowed":       {echo, "agent", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			if _, status, err := s.connect(tc.target, tc.commonName); err != nil || status != tc.want {
				t.Errorf("status is %d, want %d: %v", status, tc.want, err)
			}
		})
	}
	t.Run("another shoot's certificate", func(t *testing.T) {
		other := &testServer{t: t, ca: newTestCA(t), proxy: s.proxy}
		other.ca.pool = s.ca.pool // it trusts the server
		if conn, _, err := other.connect(echo, "kube-apiserver"); err == nil || conn != nil {
			t.Error("it was accepted")
		}
	})
}

func TestOnlyConnectIsServed(t *testing.T) {
	s := start(t, nil)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.ca.client(t, "kube-apiserver")}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.proxy+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status is %d", response.StatusCode)
	}
}

func TestAgentReconnects(t *testing.T) {
	a := newTestCA(t)
	s := startAt(t, a, "127.0.0.1:0", nil)
	agent, _ := s.agent("agent-0", s.tunnel)
	awaitPeers(t, agent.servers, 1, time.Minute)
	s.stop()
	next := startAt(t, a, s.tunnel, func(v *ServerValues) { v.ID = "server-1" })
	awaitPeers(t, next.server.agents, 1, time.Minute)
	ask(t, next.mustConnect(echoServer(t)), "hello")
}

func TestConnectionWaitsForAgent(t *testing.T) {
	s := start(t, nil)
	echo := echoServer(t)
	connected := make(chan net.Conn)
	go func() {
		conn, _, _ := s.connect(echo, "kube-apiserver")
		connected <- conn
	}()
	s.agent("agent-0", s.tunnel)
	conn := <-connected
	if conn == nil {
		t.Fatal("it did not wait")
	}
	ask(t, conn, "hello")
}

func TestOneOfTwoAgentsDrains(t *testing.T) {
	s := start(t, nil)
	s.agent("agent-0", s.tunnel)
	second, stop := s.agent("agent-1", s.tunnel)
	awaitPeers(t, s.server.agents, 2, time.Minute)
	echo := echoServer(t)
	// Both get a part of the streams.
	var conns []net.Conn
	for range 8 { // an echo is one more stream of an agent for a moment
		conns = append(conns, s.mustConnect(echo))
	}
	all, _ := s.server.agents.list()
	for _, p := range all {
		if p.session.NumStreams() < 2 {
			t.Errorf("%s has %d streams", p.id, p.session.NumStreams())
		}
	}
	// One drains: its streams continue, and it gets no more.
	second.Drain(done())
	awaitPeers(t, s.server.agents, 1, time.Minute)
	for _, conn := range conns {
		ask(t, conn, "still connected")
	}
	stop()
	for range 10 {
		ask(t, s.mustConnect(echo), "hello")
	}
}

// A terminating agent is used as long as there is no other.
func TestLastAgentDrains(t *testing.T) {
	s := start(t, nil)
	first, _ := s.agent("agent-0", s.tunnel)
	awaitPeers(t, s.server.agents, 1, time.Minute)
	first.servers.replacement = 2 * time.Minute
	drained := make(chan struct{})
	go func() { first.Drain(t.Context()); close(drained) }()
	for all, changed := s.server.agents.list(); !all[0].drained.Load(); all, changed = s.server.agents.list() {
		<-changed
	}
	conn := s.mustConnect(echoServer(t))
	ask(t, conn, "hello")
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-drained:
		t.Fatal("the drain ended before another agent was connected")
	default:
	}
	s.agent("agent-1", s.tunnel)
	select {
	case <-drained:
	case <-time.After(time.Minute):
		t.Error("the drain does not end, though another agent is connected")
	}
}

// done is a cancelled context.
func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAgentConnectsToAllServers(t *testing.T) {
	a := newTestCA(t)
	two := func(id string) func(*ServerValues) {
		return func(v *ServerValues) { v.ID, v.Replicas = id, 2 }
	}
	first, second := startAt(t, a, "127.0.0.1:0", two("server-0")), startAt(t, a, "127.0.0.1:0", two("server-1"))
	// A load balancer.
	var n atomic.Int32
	balancer := serve(t, func(conn *net.TCPConn) {
		to := first.tunnel
		if n.Add(1) > 2 {
			to = second.tunnel
		}
		backend, err := net.Dial("tcp", to)
		if err == nil {
			pipe(conn, backend.(*net.TCPConn)) //nolint:forcetypeassert // it is TCP
		}
	})
	agent, _ := first.agent("agent-0", balancer)
	awaitPeers(t, agent.servers, 2, time.Minute)
	awaitPeers(t, second.server.agents, 1, time.Minute)
	echo := echoServer(t)
	ask(t, first.mustConnect(echo), "hello")
	ask(t, second.mustConnect(echo), "hello")
}

func TestServerDrains(t *testing.T) {
	a := newTestCA(t)
	first, second := startAt(t, a, "127.0.0.1:0", nil), startAt(t, a, "127.0.0.1:0", func(v *ServerValues) { v.ID = "server-1" })
	var mu sync.Mutex
	to := first.tunnel
	balancer := serve(t, func(conn *net.TCPConn) {
		mu.Lock()
		address := to
		mu.Unlock()
		if backend, err := net.Dial("tcp", address); err == nil {
			pipe(conn, backend.(*net.TCPConn)) //nolint:forcetypeassert // it is TCP
		}
	})
	first.agent("agent-0", balancer)
	awaitPeers(t, first.server.agents, 1, time.Minute)
	echo := echoServer(t)
	old := first.mustConnect(echo)
	mu.Lock()
	to = second.tunnel
	mu.Unlock()
	first.server.Drain(done())
	awaitPeers(t, second.server.agents, 1, time.Minute)
	ask(t, old, "still connected")
	ask(t, second.mustConnect(echo), "hello")
}

func TestAPIServerProxy(t *testing.T) {
	api := echoServer(t)
	s := start(t, func(v *ServerValues) { v.APIServer = api })
	links, address := forward(t, s)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, conn, "hello")
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("servers do not dial through a proxy", func(t *testing.T) {
		if err := s.server.Healthy(); !errors.Is(err, errDisconnected) {
			t.Errorf("a proxy is used as an agent: %v", err)
		}
		all, _ := s.server.proxies.list()
		if _, err := all[0].connect(t.Context(), request{Type: requestDial, Address: api}); !errors.Is(err, errForbidden) {
			t.Errorf("a proxy accepted a request: %v", err)
		}
		awaitPeers(t, links.servers, 1, time.Minute)
		servers, _ := links.servers.usable()
		if _, err := servers[0].connect(t.Context(), request{Type: requestDial, Address: api}); !errors.Is(err, errForbidden) {
			t.Errorf("a proxy could request a connection: %v", err)
		}
	})
	t.Run("an agent may not connect to the kube-apiserver", func(t *testing.T) {
		agent, _ := s.agent("agent-0", s.tunnel)
		awaitPeers(t, agent.servers, 1, time.Minute)
		servers, _ := agent.servers.usable()
		if _, err := servers[0].connect(t.Context(), request{Type: requestAPIServer}); !errors.Is(err, errForbidden) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("the kube-apiserver is not running", func(t *testing.T) {
		_, address := forward(t, start(t, func(v *ServerValues) { v.APIServer = "127.0.0.1:1" }))
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("got %d bytes", n)
		}
	})
}

// forward runs a proxy for the kube-apiserver of a server, and returns its links and its address.
func forward(t *testing.T, s *testServer) (links *Links, address string) {
	t.Helper()
	links, _ = s.run(NewLinks(LinksValues{
		Address: s.tunnel, TLS: s.ca.client(t, "node"), ID: "node-0", Role: RoleAPIServerProxy, Metrics: newMetrics(t), Clock: clock.RealClock{},
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // ends the forwarding
	go func() { _ = links.Forward(t.Context(), listener) }()
	return links, listener.Addr().String()
}

func TestUnknownClientIsRefused(t *testing.T) {
	s := start(t, nil)
	conn, err := tls.Dial("tcp", s.tunnel, s.ca.client(t, "stranger"))
	if err == nil {
		_, err = exchangeHellos(conn, hello{ID: "stranger"})
	}
	if err == nil {
		t.Error("it was accepted")
	}
}

// Writes block like this when the buffer of the kernel is full. The library alone waits for writeTimeout.
func TestConnectionThatTakesNoBytesIsNoticed(t *testing.T) {
	conn, end := net.Pipe() // nothing reads at its end
	t.Cleanup(func() { _ = end.Close() })
	p, err := newPeer(conn, "there", true, streamWindow, streamLimits{opened: unlimited})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.connect(ctx, request{Type: requestAPIServer}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error of a request is %v", err)
	}
	if took := time.Since(began); took > writeTimeout/3 {
		t.Errorf("a request ended after %s", took)
	}
	began = time.Now()
	if err := p.echo(50 * time.Millisecond); err == nil || !p.session.IsClosed() {
		t.Errorf("the connection is not closed: %v", err)
	}
	if took := time.Since(began); took > writeTimeout/3 {
		t.Errorf("the connection was closed after %s", took)
	}
}

// A client that keeps its connection open does not keep a stream whose tunnel is closed.
func TestConnectionsEndWithTheTunnel(t *testing.T) {
	a, b := net.Pipe()
	here, err := newPeer(a, "there", true, streamWindow, streamLimits{opened: unlimited})
	if err != nil {
		t.Fatal(err)
	}
	there, err := newPeer(b, "here", false, streamWindow, streamLimits{opened: unlimited})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := here.open(request{Type: requestAPIServer})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	address := serve(t, func(conn *net.TCPConn) { pipe(conn, stream); close(ended) })
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // it is not needed any more
	_ = there.session.Close()
	select {
	case <-ended:
	case <-time.After(halfClosed / 4):
		t.Error("the connection is not closed")
	}
}

// frozen is a connection that can be frozen: then bytes are lost without an error.
type frozen struct {
	net.Conn
	frozen chan struct{}
}

func (f frozen) Write(b []byte) (int, error) {
	select {
	case <-f.frozen:
		return len(b), nil
	default:
		return f.Conn.Write(b)
	}
}

// Other bytes can delay an echo for longer than its timeout, but show that the connection works.
func TestSlowConnectionIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var received atomic.Int64
		over := make(chan struct{})
		go func() {
			for range 60 {
				received.Store(time.Now().UnixNano())
				time.Sleep(time.Second) //nolint:forbidigo // time is not real here
			}
		}()
		began := time.Now()
		if !silent(&received, echoTimeout, over) {
			t.Error("a silent connection is not closed")
		}
		if took := time.Since(began); took != 59*time.Second+echoTimeout {
			t.Errorf("a silent connection was closed after %s", took)
		}
		close(over)
		if silent(&received, echoTimeout, over) {
			t.Error("a connection is closed although its echo came back")
		}
	})
}

// It has a process of its own: the library shares timers between connections, and timers of a bubble must not leave it.
func TestDeadConnectionIsNoticed(t *testing.T) {
	const own = "TUNNEL_TEST_PROCESS"
	if os.Getenv(own) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // it is this test
		cmd.Env = append(os.Environ(), own+"=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		freeze := make(chan struct{})
		here, err := newPeer(frozen{a, freeze}, "there", true, streamWindow, streamLimits{opened: unlimited})
		if err != nil {
			t.Fatal(err)
		}
		there, err := newPeer(b, "here", false, streamWindow, streamLimits{opened: unlimited})
		if err != nil {
			t.Fatal(err)
		}
		nothing, none := func(time.Duration) {}, func(context.Context, *yamux.Stream, request) {}
		ended := make(chan time.Duration, 2)
		var frozenAt time.Time
		for _, p := range []*peer{here, there} {
			go func() {
				p.serve(t.Context(), clock.RealClock{}, newPeers(), nothing, none)
				ended <- time.Since(frozenAt)
			}()
		}
		time.Sleep(time.Minute) //nolint:forbidigo // time is not real here
		if !here.healthy.Load() || !there.healthy.Load() {
			t.Error("the connection is not healthy")
		}
		if here.received.Load() == 0 || there.received.Load() == 0 {
			t.Error("the time of received bytes was not recorded")
		}
		frozenAt = time.Now()
		close(freeze)
		for range 2 {
			if took := <-ended; took > echoInterval+echoTimeout {
				t.Errorf("the connection was closed after %s", took)
			}
		}
		if here.healthy.Load() || there.healthy.Load() {
			t.Error("a dead connection is healthy")
		}
	})
}

func TestTarget(t *testing.T) {
	v := AgentValues{Networks: []netip.Prefix{netip.MustParsePrefix("10.4.0.0/16"), netip.MustParsePrefix("fd00::/64")}}
	for address, want := range map[string]string{
		"10.4.0.1:443":          "10.4.0.1:443",
		"[fd00::1]:10250":       "[fd00::1]:10250",
		"[::ffff:10.4.0.1]:443": "10.4.0.1:443",
		"10.5.0.1:443":          "",
		"[fd00::1%lo]:443":      "",
		"169.254.169.254:80":    "",
		"127.0.0.1:443":         "",
		"localhost:443":         "",
		"10.4.0.1:0":            "",
		"10.4.0.1:70000":        "",
		"10.4.0.1":              "",
		"":                      "",
	} {
		got, err := target(t.Context(), v, address)
		if want == "" {
			if !errors.Is(err, errForbidden) {
				t.Errorf("target(%q) is %s, %v", address, got, err)
			}
		} else if err != nil || got.String() != want {
			t.Errorf("target(%q) is %s, %v", address, got, err)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	var frame bytes.Buffer
	if err := writeMessage(&frame, request{Type: requestDial, Address: "10.0.0.1:443"}); err != nil {
		f.Fatal(err)
	}
	f.Add(frame.Bytes())
	f.Add([]byte{0, 0})
	f.Add([]byte{0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := bytes.NewReader(data)
		var got request
		if err := readMessage(reader, &got); err != nil {
			return
		}
		if read := len(data) - reader.Len(); read > 2+maxMessage {
			t.Errorf("%d bytes were read", read)
		}
		var again bytes.Buffer
		if err := writeMessage(&again, got); err != nil {
			return // escapes may make it longer than it was
		}
		var same request
		if err := readMessage(&again, &same); err != nil || again.Len() > 0 {
			t.Fatalf("it cannot be read back: %v", err)
		}
		if diff := cmp.Diff(got, same); diff != "" {
			t.Errorf("it differs (-first +second):\n%s", diff)
		}
	})
}

func FuzzTarget(f *testing.F) {
	network := netip.MustParsePrefix("10.0.0.0/8")
	f.Add("10.0.0.1:443")
	f.Add("[::1%eth0]:1")
	nowhere := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no") }}
	f.Fuzz(func(t *testing.T, address string) {
		got, err := target(t.Context(), AgentValues{Networks: []netip.Prefix{network}, Resolver: nowhere}, address)
		if err == nil && (!network.Contains(got.Addr()) || got.Port() == 0) {
			t.Errorf("target(%q) is %s", address, got)
		}
	})
}
