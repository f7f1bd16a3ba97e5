// Package ports finds ports for servers that tests start, and that cannot report the port of a listener on port 0.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// Ports are below those that the kernel assigns to connections and to listeners on port 0, so that it does not assign a found port before
// its server listens.
const (
	first = 20000
	count = 12000
)

// reserved keeps the locks of ports: an unreferenced socket would be closed by the garbage collector.
var reserved sync.Map

// Find returns ports of the loopback interface without a listener. No other test on this computer gets one of them while this process
// runs.
func Find(n int) ([]int, error) {
	found := make([]int, 0, n)
	for range count {
		if len(found) == n {
			return found, nil
		}
		port := first + rand.IntN(count) //nolint:gosec // it is no secret
		free, err := take(port)
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		if free {
			found = append(found, port)
		}
	}
	return nil, fmt.Errorf("found %[2]d free ports in %[1]d tries, want %[3]d", count, len(found), n)
}

// Free is Find for a test.
func Free(t testing.TB, n int) []int {
	t.Helper()
	found, err := Find(n)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// take reserves a port, and reports whether it was free.
func take(port int) (bool, error) {
	// A socket of this kind is a lock that ends with the process, and leaves no file.
	lock, err := net.Listen("unix", fmt.Sprintf("@gardener-test-port-%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EADDRINUSE) {
			err = nil
		}
		return false, err
	}
	reserved.Store(port, lock)
	return true, listener.Close()
}
