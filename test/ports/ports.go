// Package ports finds ports for servers that tests start, and that cannot tell which port they were given.
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

// Ports are below those that the kernel gives to connections and to listeners on port 0, so that none of these gets one of ours before
// its server listens.
const (
	first = 20000
	count = 12000
)

// reserved has the locks of ports: who forgets a socket closes it some day.
var reserved sync.Map

// Find returns ports of the loopback interface that nobody listens on. No test on this computer gets one of them again while this process
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
	return nil, fmt.Errorf("of %d tries, %d found a free port instead of %d", count, len(found), n)
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

// take reserves a port and tells whether it could.
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
