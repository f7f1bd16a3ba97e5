package tunnel

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/hashicorp/yamux"
)

// AgentValues are what an agent needs.
type AgentValues struct {
	LinksValues
	// Networks are those of nodes, pods and services of the shoot. Connections to anything else are refused.
	Networks []netip.Prefix
	// Resolver resolves host names. Nil means the system's.
	Resolver *net.Resolver
}

// NewAgent returns links over which servers may request connections to the networks of the shoot.
func NewAgent(v AgentValues) *Links {
	l := NewLinks(v.LinksValues)
	l.Role = RoleAgent
	l.handle = func(ctx context.Context, stream *yamux.Stream, req request) {
		if req.Type != requestDial {
			_ = writeMessage(stream, reply{Code: replyForbidden, Message: "an agent does not serve this request"})
			return
		}
		serveDial(ctx, stream, req.Type, l.Metrics, func(ctx context.Context) (net.Conn, error) {
			to, err := target(ctx, v, req.Address)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
		})
	}
	return l
}

// target resolves an address, and returns it if it is in the networks.
func target(ctx context.Context, v AgentValues, address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %q is not an address with a port", errForbidden, address)
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil || number == 0 {
		return netip.AddrPort{}, fmt.Errorf("%w: %q is not a port", errForbidden, port)
	}
	addrs := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, addr)
	} else {
		resolver := v.Resolver
		if resolver == nil {
			resolver = net.DefaultResolver
		}
		// The address that is checked is the one that is dialed, so that the record cannot change in between.
		if addrs, err = resolver.LookupNetIP(ctx, "ip", host); err != nil {
			return netip.AddrPort{}, fmt.Errorf("resolve %q: %w", host, err)
		}
	}
	for _, addr := range addrs {
		addr = addr.Unmap()
		if addr.Zone() == "" && slices.ContainsFunc(v.Networks, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			return netip.AddrPortFrom(addr, uint16(number)), nil //nolint:gosec // a port is no larger
		}
	}
	return netip.AddrPort{}, fmt.Errorf("%w: %s is in no network of the shoot", errForbidden, host)
}
