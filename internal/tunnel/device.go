package tunnel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
)

// assign gives an address to a network device, unless it has it. It stays when the process ends, so that connections to the next one
// are not led elsewhere in between.
func assign(device string, addr netip.Addr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find network device %q: %w", device, err)
	}
	network := &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: network}); err != nil && !errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("give %s to network device %q: %w", addr, device, err)
	}
	return nil
}
