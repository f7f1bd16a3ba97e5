package tunnel

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

// ways returns functions that connect to the same server directly and through the tunnel.
func ways(b *testing.B, server string) map[string]func() net.Conn {
	b.Helper()
	s := start(b, nil)
	s.agent("agent-0", s.tunnel)
	awaitPeers(b, s.server.agents, 1, 5*time.Second)
	return map[string]func() net.Conn{
		"direct": func() net.Conn {
			conn, err := net.Dial("tcp", server)
			if err != nil {
				b.Fatal(err)
			}
			return conn
		},
		"tunnel": func() net.Conn { return s.mustConnect(server) },
	}
}

// BenchmarkConnect opens connections.
func BenchmarkConnect(b *testing.B) {
	for name, connect := range ways(b, echoServer(b)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = connect().Close()
			}
		})
	}
}

// BenchmarkRoundTrip sends a few bytes, and waits until they come back.
func BenchmarkRoundTrip(b *testing.B) {
	for name, connect := range ways(b, echoServer(b)) {
		b.Run(name, func(b *testing.B) {
			conn := connect()
			message := make([]byte, 256)
			for b.Loop() {
				if _, err := conn.Write(message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDownload reads as fast as it can, with one connection and with several.
func BenchmarkDownload(b *testing.B) {
	zeros := make([]byte, 64<<10)
	source := serve(b, func(conn *net.TCPConn) {
		for {
			if _, err := conn.Write(zeros); err != nil {
				return
			}
		}
	})
	for name, connect := range ways(b, source) {
		b.Run(name, func(b *testing.B) {
			conn := connect()
			buffer := make([]byte, 64<<10)
			b.SetBytes(1 << 20)
			for b.Loop() {
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(conn, 1<<20), buffer); err != nil {
					b.Fatal(err)
				}
			}
			_ = conn.Close()
		})
	}
	// The cost of the two layers of TLS alone: client to server, server to agent.
	b.Run("tls", func(b *testing.B) {
		a := newTestCA(b)
		server := serve(b, func(conn *net.TCPConn) {
			secure := tls.Server(conn, a.server(b))
			for {
				if _, err := secure.Write(zeros); err != nil {
					return
				}
			}
		})
		conn, err := tls.Dial("tcp", server, a.client(b, "client"))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // it was only read from
		b.SetBytes(1 << 20)
		for b.Loop() {
			if _, err := io.CopyN(io.Discard, conn, 1<<20); err != nil {
				b.Fatal(err)
			}
		}
	})
}
