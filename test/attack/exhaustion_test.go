package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
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
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	gateway "gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/gateway/haproxy"
	"gardener.cloud/gardener/internal/tunnel"
	"gardener.cloud/gardener/test/ports"
)

// tunnelServer is a tunnel server whose clients are run by the attacker: root on a node has the certificates of both roles.
type tunnelServer struct {
	address, proxy string
	server         *tunnel.Server
	registry       *prometheus.Registry
	clients        map[string]tls.Certificate
}

func startTunnel(t *testing.T, limits tunnel.Limits) *tunnelServer {
	t.Helper()
	s := &tunnelServer{registry: prometheus.NewRegistry(), clients: map[string]tls.Certificate{}}
	pool := x509.NewCertPool()
	for _, name := range []string{"server", "agent", "node", "kube-apiserver"} {
		s.clients[name] = selfSigned(t, name)
		pool.AddCert(s.clients[name].Leaf)
	}
	metrics, err := tunnel.NewMetrics(s.registry)
	if err != nil {
		t.Fatal(err)
	}
	s.server = tunnel.NewServer(tunnel.ServerValues{
		ID: "server-0", Replicas: 1, Roles: map[string]tunnel.Role{"agent": tunnel.RoleAgent, "node": tunnel.RoleAPIServerProxy},
		ProxyClients: []string{"kube-apiserver"}, APIServer: echoes(t), Limits: limits, Metrics: metrics, Clock: clock.RealClock{},
	})
	config := &tls.Config{
		Certificates: []tls.Certificate{s.clients["server"]}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	}
	listeners := [2]net.Listener{listenLocally(t), listenLocally(t)}
	s.address, s.proxy = listeners[0].Addr().String(), listeners[1].Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	web := &http.Server{Handler: s.server, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.ServeTunnel(ctx, tls.NewListener(listeners[0], config)) }()
	go func() { _ = web.Serve(tls.NewListener(listeners[1], config)) }()
	t.Cleanup(func() { cancel(); _ = web.Close() })
	return s
}

func listenLocally(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// echoes is a server that sends back what it receives.
func echoes(t *testing.T) string {
	t.Helper()
	listener := listenLocally(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // its client has left
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func selfSigned(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

func (s *tunnelServer) config(client string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{s.clients[client]}, InsecureSkipVerify: true} //nolint:gosec // the server is not what is attacked
}

type message struct {
	Version int    `json:"version,omitempty"`
	ID      string `json:"id,omitempty"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
}

func send(w io.Writer, m message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint16(nil, uint16(len(data))) //nolint:gosec // it is short
	_, err = w.Write(append(frame, data...))
	return err
}

func receive(r io.Reader) (m message, err error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return m, err
	}
	data := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(r, data); err != nil {
		return m, err
	}
	return m, json.Unmarshal(data, &m)
}

// enter opens a connection and exchanges the first messages.
func (s *tunnelServer) enter(t *testing.T, role, id string) (*tls.Conn, message) {
	t.Helper()
	conn, err := tls.Dial("tcp", s.address, s.config(role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_ = send(conn, message{Version: 1, ID: id}) // a server that refuses has said so, and may have closed the connection
	hello, err := receive(conn)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return conn, hello
}

// multiplex opens a connection on which streams can be opened. Streams of the server get no reply.
func (s *tunnelServer) multiplex(t *testing.T, role string) *yamux.Session {
	t.Helper()
	conn, hello := s.enter(t, role, "attacker")
	if hello.Error != "" {
		t.Fatal(hello.Error)
	}
	config := yamux.DefaultConfig()
	config.EnableKeepAlive, config.LogOutput = false, io.Discard
	session, err := yamux.Client(conn, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// refused is the value of tunnel_refused_total.
func (s *tunnelServer) refused(t *testing.T, limit string) float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "tunnel_refused_total" && metric.GetLabel()[0].GetValue() == limit {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func (s *tunnelServer) mustRefuse(t *testing.T, limit string) {
	t.Helper()
	if s.refused(t, limit) == 0 {
		t.Errorf("tunnel_refused_total{limit=%q} is 0", limit)
	}
}

// connectAgent runs an agent that is not the attacker's, and connects through it.
func (s *tunnelServer) connectAgent(t *testing.T) {
	t.Helper()
	metrics, err := tunnel.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	agent := tunnel.NewAgent(tunnel.AgentValues{
		LinksValues: tunnel.LinksValues{Address: s.address, TLS: s.config("agent"), ID: "honest", Metrics: metrics, Clock: clock.RealClock{}},
		Networks:    []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); agent.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	if _, status := s.connect(t); status != http.StatusOK {
		t.Fatalf("a connection through an honest agent: status %d", status)
	}
}

// connect requests a connection into the shoot as the kube-apiserver does. It returns the body of a refusal.
func (s *tunnelServer) connect(t *testing.T) (string, int) {
	t.Helper()
	target := echoes(t)
	conn, err := tls.Dial("tcp", s.proxy, s.config("kube-apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err != nil {
		t.Fatal(err)
	}
	var status int
	if _, err := fmt.Sscanf(string(answer[:n]), "HTTP/1.1 %d", &status); err != nil {
		t.Fatal(err)
	}
	return string(answer[:n]), status
}

// closed waits until the server closes a connection.
func closed(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	for buffer := make([]byte, 4096); ; {
		_, err := conn.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server keeps the connection open")
		}
		if err != nil {
			return
		}
	}
}

// The tunnel's server serves more than one node, and holds memory of the seed: an attacker with a client certificate, or with none, opens as
// much as possible.
func TestTunnelIsNotExhausted(t *testing.T) {
	t.Run("by connections without a handshake", func(t *testing.T) {
		s := startTunnel(t, tunnel.Limits{Handshakes: 20})
		var silent []net.Conn
		for range 50 {
			conn, err := net.Dial("tcp", s.address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			silent = append(silent, conn)
		}
		closed(t, silent[0]) // long before its handshake times out, but the next ones may need that
		s.connectAgent(t)
		s.mustRefuse(t, "handshakes")
	})
	t.Run("by connections with a certificate", func(t *testing.T) {
		s := startTunnel(t, tunnel.Limits{Agents: 3, APIServerProxies: 5})
		s.connectAgent(t)
		for role, tc := range map[string]struct {
			more int
			flag string
		}{"agent": {2, "--max-agents"}, "node": {5, "--max-apiserver-proxies"}} {
			var conns []net.Conn
			for i := range tc.more {
				conn, hello := s.enter(t, role, fmt.Sprint("attacker-", i))
				if hello.Error != "" {
					t.Fatalf("connection %d of %q: %s", i, role, hello.Error)
				}
				conns = append(conns, conn)
			}
			conn, hello := s.enter(t, role, "one-more")
			if !strings.Contains(hello.Error, tc.flag) {
				t.Errorf("one connection more of %q gets the error %q, want one with %s", role, hello.Error, tc.flag)
			}
			closed(t, conn)
			_ = conns[0].Close() // the next one may connect
			for end := time.Now().Add(patience); ; {
				if _, hello := s.enter(t, role, "later"); hello.Error == "" {
					break
				}
				if time.Now().After(end) {
					t.Fatal("a closed connection is counted")
				}
			}
		}
		s.mustRefuse(t, "connections")
	})
	t.Run("by streams of one connection", func(t *testing.T) {
		s := startTunnel(t, tunnel.Limits{StreamsPerConnection: 10})
		session := s.multiplex(t, "node")
		ok, busy := open(t, session, 15)
		if ok > 10 || busy < 5 {
			t.Errorf("%d streams were served, %d refused, of 15 with a limit of 10", ok, busy)
		}
		s.mustRefuse(t, "streams-per-connection")
	})
	t.Run("by streams that are refused and not closed", func(t *testing.T) {
		s := startTunnel(t, tunnel.Limits{StreamsPerConnection: 10})
		session := s.multiplex(t, "agent") // agents have nothing to open
		for range 5000 {
			stream, err := session.OpenStream()
			if err != nil {
				break
			}
			if _, err := stream.Write(make([]byte, 60<<10)); err != nil {
				break
			}
		}
		select {
		case <-session.CloseChan():
		case <-time.After(patience):
			t.Error("the server keeps the connection open")
		}
		s.mustRefuse(t, "unclosed-streams")
	})
	t.Run("by streams of all connections", func(t *testing.T) {
		s := startTunnel(t, tunnel.Limits{Streams: 20, StreamsPerConnection: 15})
		s.connectAgent(t) // one stream
		var served int
		for range 2 {
			ok, _ := open(t, s.multiplex(t, "node"), 12)
			served += ok
		}
		if served != 19 {
			t.Errorf("%d streams were served, want 19", served)
		}
		if body, status := s.connect(t); status != http.StatusServiceUnavailable || !strings.Contains(body, "--max-streams") {
			t.Errorf("a connection more: status %d: %s", status, body)
		}
		s.mustRefuse(t, "streams")
	})
	t.Run("by pings whose responses are not read", func(t *testing.T) {
		s := startTunnel(t, tunnel.Limits{})
		conn, _ := s.enter(t, "node", "attacker")
		before := runtime.NumGoroutine()
		ping := []byte{0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}
		flood := []byte(strings.Repeat(string(ping), 1<<14))
		_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
		for range 50 {
			if _, err := conn.Write(flood); err != nil {
				break
			}
		}
		if more := runtime.NumGoroutine() - before; more > 1000 {
			t.Errorf("the server has %d goroutines more", more)
		}
		closed(t, conn)
	})
	t.Run("by a frame that claims to be large", func(t *testing.T) {
		s := startTunnel(t, tunnel.Limits{})
		conn, _ := s.enter(t, "node", "attacker")
		syn, data := []byte{0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0}
		if _, err := conn.Write(append(syn, data...)); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(4 * time.Second)) // an echo that does not come back takes longer
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the server waits for 192 KiB")
		}
	})
	t.Run("by a name that is logged", func(t *testing.T) {
		s := startTunnel(t, tunnel.Limits{})
		conn, _ := s.enter(t, "node", strings.Repeat("x", 3000))
		_ = conn.SetReadDeadline(time.Now().Add(4 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the server accepts a name of 3000 bytes")
		}
	})
}

// open opens streams to the kube-apiserver, and returns how many are served and refused.
func open(t *testing.T, session *yamux.Session, n int) (ok, busy int) {
	t.Helper()
	for range n {
		stream, err := session.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		if err := send(stream, message{Type: "apiserver"}); err != nil {
			t.Fatal(err)
		}
		_ = stream.SetReadDeadline(time.Now().Add(patience))
		reply, err := receive(stream)
		if err != nil {
			t.Fatal(err)
		}
		switch reply.Code {
		case "ok":
			ok++
		case "busy":
			busy++
			_ = stream.Close()
		default:
			t.Fatalf("the server replied %+v", reply)
		}
	}
	return ok, busy
}

// All shoots of a seed share its gateway: neither one source nor one server name can take all of it.
func TestGatewayIsNotExhausted(t *testing.T) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("there is no haproxy")
	}
	dir, free := t.TempDir(), ports.Free(t, 2)
	config := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(config, []byte(gateway.Configuration(dir, free[0], free[1], false)), 0o600); err != nil {
		t.Fatal(err)
	}
	certificate := selfSigned(t, "server")
	table := haproxy.NewTable()
	for _, name := range []string{"attacker", "attacker-too", "victim", "other"} {
		listener := tls.NewListener(listenLocally(t), &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
		address := netip.MustParseAddrPort(listener.Addr().String())
		table.Add(name+".example.com", address)
		table.Add("alias-of-"+name+".example.com", address)
		server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	if err := haproxy.NewProgrammer(dir, clock.RealClock{}).Set(table); err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), binary, "-db", "-f", config) //nolint:gosec // it is the test's own
	process.Env = append(os.Environ(), gateway.EnvConnections+"=20", gateway.EnvRate+"=1000")
	process.Stdout, process.Stderr = t.Output(), t.Output()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })

	// Each address of 127.0.0.0/8 is a source.
	dial := func(from, name string) (*tls.Conn, error) {
		dialer := &tls.Dialer{
			NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience},
			Config:    &tls.Config{ServerName: name, InsecureSkipVerify: true}, //nolint:gosec // it is about where a connection goes
		}
		conn, err := dialer.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", free[0]))
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*tls.Conn), nil //nolint:forcetypeassert // that is what it returns
	}
	for end := time.Now().Add(patience); ; {
		if _, err = dial("127.0.9.9", "other.example.com"); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	t.Run("by one source without a server name", func(t *testing.T) {
		for i := range 60 {
			conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.1.1")}}).Dial("tcp", fmt.Sprintf("127.0.0.1:%d", free[0]))
			if err != nil { // it was refused before connect returned
				continue
			}
			t.Cleanup(func() { _ = conn.Close() })
			if i < 20 {
				continue
			}
			// It is closed at once, or else after ten seconds without a name: the metrics below say how many were refused.
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("connection %d stays open", i+1)
			}
		}
		if _, err := dial("127.0.1.2", "victim.example.com"); err != nil {
			t.Errorf("another source is refused: %v", err)
		}
	})
	t.Run("by one Service from many sources", func(t *testing.T) {
		var served int
		for i := range 40 {
			name := []string{"attacker.example.com", "alias-of-attacker.example.com"}[i%2]
			if _, err := dial(fmt.Sprintf("127.0.2.%d", i+1), name); err == nil {
				served++
			}
		}
		if served != 20 {
			t.Errorf("%d of 40 connections were served, want 20", served)
		}
		if _, err := dial("127.0.2.1", "victim.example.com"); err != nil {
			t.Errorf("another Service cannot be reached: %v", err)
		}
	})
	t.Run("without being counted", func(t *testing.T) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", free[1]), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		metrics, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		// A connection that ends without a server name is denied, too.
		for _, want := range []string{`haproxy_frontend_denied_connections_total{proxy="tls"} 40\n`, `haproxy_frontend_requests_denied_total{proxy="tls"} [2-9][0-9]\n`} {
			if !regexp.MustCompile(want).Match(metrics) {
				t.Errorf("the metrics do not have %s", want)
			}
		}
	})
}
