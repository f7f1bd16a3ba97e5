package ports

import (
	"net"
	"strconv"
	"testing"
)

func TestPortsAreFoundOnce(t *testing.T) {
	all := Free(t, 50)
	seen := map[int]bool{}
	for _, port := range all {
		if seen[port] {
			t.Errorf("port %d twice", port)
		}
		seen[port] = true
		if free, err := take(port); free || err != nil {
			t.Errorf("port %d can be taken again: %t, %v", port, free, err)
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(all[0])))
	if err != nil {
		t.Fatalf("it is not free: %v", err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
}

func TestPortsOfServersAreSkipped(t *testing.T) {
	port := Free(t, 1)[0] + 1
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Skip(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	for range 2 {          // the first attempt leaves no reservation
		if free, err := take(port); free || err != nil {
			t.Errorf("a port with a server is free: %t, %v", free, err)
		}
	}
}
