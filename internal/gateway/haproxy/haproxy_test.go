package haproxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	component "gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/gateway/haproxy"
	"gardener.cloud/gardener/test/ports"
)

// TestRealHAProxy uses HAProxy where it is installed. The landscape's tests use that of the distribution.
func TestRealHAProxy(t *testing.T) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("there is no haproxy")
	}
	dir := t.TempDir()
	proxy := ports.Free(t, 1)[0]
	config := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(config, []byte(component.Configuration(dir, proxy, ports.Free(t, 1)[0], false)), 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := echo(t, "first"), echo(t, "second")
	programmer := haproxy.NewProgrammer(dir, clock.RealClock{})
	table := haproxy.NewTable()
	table.Add("api.example.com", first)
	for i := range 2000 {
		table.Add(fmt.Sprintf("api.shoot-%d.project.internal.landscape.example.org", i), first)
	}
	if err := programmer.Set(table); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = programmer.Start(running) }()
	t.Cleanup(func() { stop(); <-ended })
	process := start(t, binary, config)
	await(t, programmer)
	address := fmt.Sprintf("127.0.0.1:%d", proxy)

	old := dial(t, address, "API.example.com")
	old.expect("first")
	refused(t, address, "other.example.com")
	refused(t, address, "")

	// Other routes for new connections; the old connection is kept.
	table = haproxy.NewTable()
	table.Add("*.example.com", first)
	table.Add("*.deep.example.com", second)
	table.Add("api.example.com", second)
	table.Add("closed.deep.example.com", netip.AddrPort{})
	if err := programmer.Set(table); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"api.example.com": "second", "x.example.com": "first", "x.y.deep.example.com": "second"} {
		eventually(t, address, name, want)
	}
	refused(t, address, "closed.deep.example.com")
	refused(t, address, "api.shoot-7.project.internal.landscape.example.org")
	old.expect("first")

	// A ClientHello in many pieces.
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	(&client{t, tls.Client(dribble{conn}, insecure("api.example.com"))}).expect("second")

	// HAProxy restarts, while routes change.
	stopProcess(t, process)
	table = haproxy.NewTable()
	table.Add("later.example.com", first)
	if err := programmer.Set(table); err != nil {
		t.Fatal(err)
	}
	start(t, binary, config)
	eventually(t, address, "later.example.com", "first")
	await(t, programmer)
}

// TestProxyProtocol connects with and without a header of the PROXY protocol, where load balancers may send it and where they may not.
func TestProxyProtocol(t *testing.T) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("there is no haproxy")
	}
	const (
		v1 = "PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\n"
		v2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x03\xe8\x01\xbb"
	)
	for name, tc := range map[string]struct {
		allowed  bool
		header   string
		accepted bool
	}{
		"allowed and plain":        {allowed: true, accepted: true},
		"allowed with version 1":   {allowed: true, header: v1, accepted: true},
		"allowed with version 2":   {allowed: true, header: v2, accepted: true},
		"forbidden and plain":      {accepted: true},
		"forbidden with version 1": {header: v1},
		"forbidden with version 2": {header: v2},
	} {
		t.Run(name, func(t *testing.T) {
			dir, free := t.TempDir(), ports.Free(t, 2)
			config := filepath.Join(dir, "haproxy.cfg")
			if err := os.WriteFile(config, []byte(component.Configuration(dir, free[0], free[1], tc.allowed)), 0o600); err != nil {
				t.Fatal(err)
			}
			table := haproxy.NewTable()
			table.Add("api.example.com", echo(t, "server"))
			if err := haproxy.NewProgrammer(dir, clock.RealClock{}).Set(table); err != nil {
				t.Fatal(err)
			}
			start(t, binary, config)
			address := fmt.Sprintf("127.0.0.1:%d", free[0])
			eventually(t, address, "api.example.com", "server")
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := io.WriteString(conn, tc.header); err != nil {
				t.Fatal(err)
			}
			got, err := ask(tls.Client(conn, insecure("api.example.com")))
			if accepted := err == nil && got == "server"; accepted != tc.accepted {
				t.Errorf("the connection was accepted: %t, want %t (%v)", accepted, tc.accepted, err)
			}
		})
	}
}

// dribble writes a few bytes at a time.
type dribble struct{ net.Conn }

func (d dribble) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := d.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func start(t testing.TB, binary, config string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-db", "-f", config) //nolint:gosec // it is the test's own
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopProcess(t, cmd) })
	return cmd
}

func stopProcess(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func await(t *testing.T, p *haproxy.Programmer) {
	t.Helper()
	retry(t, p.Synced)
}

// retry retries until something succeeds.
func retry(t testing.TB, try func() error) {
	t.Helper()
	end := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-end:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

type client struct {
	t    testing.TB
	conn *tls.Conn
}

func dial(t testing.TB, address, name string) *client {
	t.Helper()
	conn, err := tls.Dial("tcp", address, insecure(name))
	if err != nil {
		t.Fatalf("connect to %s: %v", name, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn}
}

// expect sends a line, and expects a response with the name of the server.
func (c *client) expect(want string) {
	c.t.Helper()
	got, err := ask(c.conn)
	if err != nil || got != want {
		c.t.Fatalf("got response %q, want %q: %v", got, want, err)
	}
}

func ask(conn *tls.Conn) (string, error) {
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", err
	}
	return line[:len(line)-1], nil
}

func eventually(t testing.TB, address, name, want string) {
	t.Helper()
	retry(t, func() error {
		conn, err := tls.Dial("tcp", address, insecure(name))
		if err != nil {
			return fmt.Errorf("connect to %s: %w", name, err)
		}
		defer conn.Close() //nolint:errcheck // it is only asked
		if got, err := ask(conn); err != nil || got != want {
			return fmt.Errorf("%s: got response %q, want %q: %w", name, got, want, err)
		}
		return nil
	})
}

func refused(t *testing.T, address, name string) {
	t.Helper()
	conn, err := tls.Dial("tcp", address, insecure(name))
	if err == nil {
		_ = conn.Close()
		t.Errorf("connection for %q was accepted", name)
	}
}

func insecure(name string) *tls.Config {
	return &tls.Config{ServerName: name, InsecureSkipVerify: true} //nolint:gosec // the test is about where a connection goes
}

// echo is a TLS server that responds to each line with its name.
func echo(t testing.TB, name string) netip.AddrPort {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	certificate := server.TLS.Certificates[0]
	server.Close()
	if _, err := x509.ParseCertificate(certificate.Certificate[0]); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			} else if err != nil {
				continue
			}
			go func() {
				defer conn.Close() //nolint:errcheck // the client has what it asked for
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					_, _ = fmt.Fprintln(conn, name)
				}
			}()
		}
	}()
	return netip.MustParseAddrPort(listener.Addr().String())
}

// BenchmarkRoundTrip sends a line, and waits for the response, without and with HAProxy.
func BenchmarkRoundTrip(b *testing.B) { benchmark(b, false) }

// BenchmarkConnect opens TLS connections as well.
func BenchmarkConnect(b *testing.B) { benchmark(b, true) }

func benchmark(b *testing.B, reconnect bool) {
	b.Helper()
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		b.Skip("there is no haproxy")
	}
	dir, port := b.TempDir(), ports.Free(b, 1)[0]
	config := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(config, []byte(component.Configuration(dir, port, ports.Free(b, 1)[0], false)), 0o600); err != nil {
		b.Fatal(err)
	}
	server := echo(b, "server")
	table := haproxy.NewTable()
	table.Add("api.example.com", server)
	if err := haproxy.NewProgrammer(dir, clock.RealClock{}).Set(table); err != nil {
		b.Fatal(err)
	}
	start(b, binary, config)
	through := fmt.Sprintf("127.0.0.1:%d", port)
	eventually(b, through, "api.example.com", "server")
	for name, address := range map[string]string{"direct": server.String(), "haproxy": through} {
		b.Run(name, func(b *testing.B) {
			conn := dial(b, address, "api.example.com")
			for b.Loop() {
				if reconnect {
					_ = conn.conn.Close()
					conn = dial(b, address, "api.example.com")
				}
				conn.expect("server")
			}
		})
	}
}
