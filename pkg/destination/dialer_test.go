package destination

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestDialer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a listener of a test
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing is lost
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} { // a name is resolved first
		if _, err := Dialer(Host).DialContext(t.Context(), "tcp4", net.JoinHostPort(host, port)); !blockedBecause(err, "itself") {
			t.Errorf("a connection to %s: %v", host, err)
		}
	}
	connection, err := Dialer(func(string) string { return "" }).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatalf("a connection that is allowed: %v", err)
	}
	_ = connection.Close()
}

func blockedBecause(err error, reason string) bool {
	var blocked *BlockedError
	return errors.As(err, &blocked) && strings.Contains(blocked.Reason, reason)
}
