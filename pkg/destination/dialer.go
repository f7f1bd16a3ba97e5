package destination

import (
	"fmt"
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
			return fmt.Errorf("the destination %s", reason)
		}
		return nil
	}}
}
