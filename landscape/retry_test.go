package landscape

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

// TestRetryReplaced covers errors of the network while what answers at the garden's address is replaced.
func TestRetryReplaced(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
		return fmt.Errorf("failed to get server groups: %w", &url.Error{Op: "Get", URL: "https://172.30.0.128:443/api", Err: err})
	}
	for name, tc := range map[string]struct {
		err   error
		calls int
	}{
		"refused":                        {dial(syscall.ECONNREFUSED), 2},
		"rejected by the machine":        {dial(syscall.ENETUNREACH), 2},
		"an error that would come again": {errors.New("forbidden"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			_ = retryReplaced(func() error {
				if calls++; calls == 1 {
					return tc.err
				}
				return nil
			})
			if calls != tc.calls {
				t.Errorf("there were %d requests, want %d", calls, tc.calls)
			}
		})
	}
}
