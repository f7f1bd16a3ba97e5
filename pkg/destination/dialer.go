package destination

import (
	"net"
	"syscall"
	"time"
)

// dialTimeout is the end of a connection attempt, and how often an open connection is probed.
const dialTimeout = 30 * time.Second

// Dialer returns a dialer that refuses addresses for which blocked, such as Host, returns a reason. It sees the address that is really used: a name
// that resolves to a blocked address, and the target of a redirect, are refused, too.
func Dialer(blocked func(host string) string) *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		if reason := blocked(host); reason != "" {
			return &BlockedError{Reason: reason}
		}
		return nil
	}}
}

// BlockedError is the error of a connection that a Dialer refuses.
type BlockedError struct {
	// Reason is why, such as "must not be a link-local address".
	Reason string
}

// Error implements error. It does not have the address, which may be that of a name in a private DNS zone.
func (e *BlockedError) Error() string { return "the destination " + e.Reason }
