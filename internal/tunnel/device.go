package tunnel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
)

// assign adds an address to a network device, unless it has it. The address stays when the process ends, so that connections are not routed
// elsewhere until the next process runs.
func assign(device string, addr netip.Addr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find network device %q: %w", device, err)
	}
	network := &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: network}); err != nil && !errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("add %s to network device %q: %w", addr, device, err)
	}
	return nil
}
