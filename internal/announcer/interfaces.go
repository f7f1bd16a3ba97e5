package announcer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// interfaces are the network interfaces of the node. The addresses have a lifetime in the kernel, so that a node whose process is dead does not keep them.
type interfaces struct{}

// Hold implements Network.
func (interfaces) Hold(address netip.Addr) error {
	link, err := linkOf(address)
	if err != nil {
		return err
	}
	a := kernelAddress(address)
	a.ValidLft = int(addressLifetime.Seconds())
	if address.Is6() {
		// Deprecated, so that the node does not send from it; and used at once: that no other node has it, the Lease says.
		a.PreferedLft, a.Flags = 0, unix.IFA_F_NODAD
	} else {
		a.PreferedLft = a.ValidLft
	}
	if err := netlink.AddrReplace(link, a); err != nil {
		return fmt.Errorf("add %s to network interface %q: %w", address, link.Attrs().Name, err)
	}
	if address.Is6() {
		err = advertise(link.Attrs(), address)
	} else {
		err = announce(link.Attrs(), address)
	}
	if err != nil {
		return fmt.Errorf("announce %s at network interface %q: %w", address, link.Attrs().Name, err)
	}
	return nil
}

// Drop implements Network.
func (interfaces) Drop(address netip.Addr) error {
	link, err := linkOf(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrDel(link, kernelAddress(address)); err != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("remove %s from network interface %q: %w", address, link.Attrs().Name, err)
	}
	return nil
}

// kernelAddress returns an address without a network: those in its network are reached by the address of the node.
func kernelAddress(address netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}}
}

// linkOf returns the network interface that has an address in the network of this one.
func linkOf(address netip.Addr) (netlink.Link, error) {
	family := netlink.FAMILY_V4
	if address.Is6() {
		family = netlink.FAMILY_V6
	}
	all, err := netlink.AddrList(nil, family)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range all {
		if ones, bits := a.Mask.Size(); ones < bits && a.Contains(address.AsSlice()) && !a.IP.IsLoopback() {
			return netlink.LinkByIndex(a.LinkIndex)
		}
	}
	return nil, fmt.Errorf("%s is in the network of no network interface of this node", address)
}

// announce sends ARP packets to all in the network that say who has an address. Some heed only requests, some only replies.
func announce(link *netlink.LinkAttrs, address netip.Addr) error {
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	to := &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ARP), Ifindex: link.Index, Halen: 6, Addr: [8]byte{255, 255, 255, 255, 255, 255}}
	for _, operation := range []uint16{1, 2} {
		if err := unix.Sendto(socket, arp(operation, link.HardwareAddr, address), 0, to); err != nil {
			return err
		}
	}
	return nil
}

// arp returns an ARP packet in which an address asks for itself, or tells itself.
func arp(operation uint16, mac net.HardwareAddr, address netip.Addr) []byte {
	packet := []byte{0, 1, 8, 0, 6, 4} // Ethernet, IPv4, and the lengths of their addresses
	packet = binary.BigEndian.AppendUint16(packet, operation)
	packet = append(append(packet, mac...), address.AsSlice()...)
	return append(append(packet, 255, 255, 255, 255, 255, 255), address.AsSlice()...)
}

func bigEndian(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// advertise sends a neighbor advertisement (RFC 4861, section 4.4) to all in the network.
func advertise(link *netlink.LinkAttrs, address netip.Addr) error {
	raw, err := net.ListenPacket("ip6:ipv6-icmp", "::")
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }()
	const override = 0x20                                                           // replace what was known
	packet := append([]byte{136, 0, 0, 0, override, 0, 0, 0}, address.AsSlice()...) // the kernel adds the checksum
	packet = append(append(packet, 2, 1), link.HardwareAddr...)                     // the link-layer address, in units of 8 bytes
	connection := ipv6.NewPacketConn(raw)
	if err := connection.SetMulticastHopLimit(255); err != nil { // others are ignored, as they may come from elsewhere
		return err
	}
	_, err = connection.WriteTo(packet, &ipv6.ControlMessage{IfIndex: link.Index, Src: address.AsSlice()}, &net.IPAddr{IP: net.IPv6linklocalallnodes, Zone: link.Name})
	return err
}
