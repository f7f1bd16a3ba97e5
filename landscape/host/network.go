package host

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	// MaxLandscapes is how many landscapes one host runs side by side: one third octet of networkBase each. It is a power of two.
	MaxLandscapes = 32
	// MaxMachines is how many machines fit into one landscape's subnet.
	MaxMachines = 100
	// MaxClusters is how many clusters of one landscape get an address pool of their own.
	MaxClusters = 7

	networkBase     = "172.30"
	networkBaseIPv6 = "fd00:172:30"
	bridgeName      = "br0"
	hostPeerName    = "host"
	netnsDir        = "/run/netns"

	// unreachablePriority is that of the rules of machines for addresses of load balancers: before the tables of routes.
	unreachablePriority = 1000
)

// Network is the network of one landscape: a network namespace with a bridge that machines are plugged into, joined to
// the host by one veth pair. Everything but that pair, one NAT table and a few routes lives inside the namespace, so that
// firewalls of the host (Docker's, firewalld's) do not see the traffic between machines, and nothing is left when the
// namespace goes.
type Network struct {
	// Landscape is the landscape's name.
	Landscape string
	// Index tells the landscapes of a host apart, from 0 to MaxLandscapes-1. It decides the subnet and interface names.
	Index int
	// Resolvers are the name servers that must be reachable even if they are in a private network.
	Resolvers []netip.Addr
	// IPv6 gives machines IPv6 addresses, too. They reach only each other with them.
	IPv6 bool
}

// HasIPv6 reports whether interfaces of new network namespaces can have IPv6 addresses.
func HasIPv6() bool {
	disabled, err := os.ReadFile("/proc/sys/net/ipv6/conf/default/disable_ipv6")
	return err == nil && strings.TrimSpace(string(disabled)) == "0"
}

// privateNetworks are the networks that machines must not reach through the host, as tests must not touch the networks around it.
// Traffic within the landscape's own subnet does not pass the host.
var privateNetworks = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"}

// Subnet holds every address of the landscape that is reachable from the host, such as 172.30.0.0/24.
func (n Network) Subnet() netip.Prefix { return netip.PrefixFrom(n.addr(0), 24) }

// Networks holds the subnets of all landscapes of a host.
func Networks() netip.Prefix {
	return netip.PrefixFrom(Network{}.addr(0), 24-bits.TrailingZeros(MaxLandscapes))
}

// Gateway is the bridge's address: default gateway, resolver and registry of the machines.
func (n Network) Gateway() netip.Addr { return n.addr(1) }

// Host is the host's own address in the subnet.
func (n Network) Host() netip.Addr { return n.addr(254) }

// Machine is the address of the machine with the given number, from 0 to MaxMachines-1.
func (n Network) Machine(number int) netip.Addr { return n.addr(2 + number) }

// Pool holds the load balancer addresses of the cluster with the given number, from 0 to MaxClusters-1.
func (n Network) Pool(cluster int) netip.Prefix { return netip.PrefixFrom(n.addr(128+16*cluster), 28) }

// NamespacePath is the path of the landscape's own network namespace.
func (n Network) NamespacePath() string { return netnsDir + "/" + n.namespaceName() }

// MachineNamespacePath is the path of the network namespace of a machine.
func (n Network) MachineNamespacePath(machine string) string {
	return netnsDir + "/" + n.machineNamespaceName(machine)
}

func (n Network) namespaceName() string { return "gardener-" + n.Landscape }

func (n Network) machineNamespaceName(machine string) string {
	return n.namespaceName() + "." + machine // A dot occurs in no landscape name, so no landscape's name is a prefix of it.
}

func (n Network) hostLink() string { return "gardener" + strconv.Itoa(n.Index) }

// machineIPv6 is the IPv6 address of a machine. Its last 16 bits are its number, counted like that of the other address.
func (n Network) machineIPv6(number int) netip.Prefix {
	return netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("%s:%x::%x", networkBaseIPv6, n.Index, 2+number)), 64)
}

func (n Network) addr(last int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("%s.%d.%d", networkBase, n.Index, last))
}

// FreeIndex returns the lowest index that no other landscape uses and whose subnet no interface or route of the host
// overlaps. Addresses of a link that is named like a landscape's count as that landscape's.
func FreeIndex(taken map[int]bool) (int, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return 0, fmt.Errorf("list routes: %w", err)
	}
	var used []netip.Prefix
	for _, route := range routes {
		if route.Dst == nil || route.Dst.IP.IsUnspecified() {
			continue
		}
		if prefix, ok := prefixOf(route.Dst); ok {
			used = append(used, prefix)
		}
	}
	return freeIndex(taken, used)
}

func freeIndex(taken map[int]bool, used []netip.Prefix) (int, error) {
next:
	for index := range MaxLandscapes {
		if taken[index] {
			continue
		}
		subnet := Network{Index: index}.Subnet()
		for _, prefix := range used {
			if prefix.Overlaps(subnet) {
				continue next
			}
		}
		return index, nil
	}
	return 0, fmt.Errorf("no free subnet: all of %s.0.0/24 to %s.%d.0/24 are used by other landscapes or routed elsewhere (see: ip route)",
		networkBase, networkBase, MaxLandscapes-1)
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), ones), ok
}

// Ensure creates what is missing of the landscape's network. It changes nothing that is as desired.
func (n Network) Ensure(_ context.Context) error {
	ns, err := ensureNamespace(n.namespaceName())
	if err != nil {
		return err
	}
	defer ns.Close() //nolint:errcheck // a descriptor that is only read
	inside, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("open network namespace %q: %w", n.namespaceName(), err)
	}
	defer inside.Close()
	outside, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer outside.Close()

	bridge, err := ensureLink(inside, &netlink.Bridge{LinkAttrs: linkAttrs(bridgeName, hostMTU(outside))})
	if err != nil {
		return err
	}
	// An address that is set stays. Otherwise, a bridge takes the lowest of its ports: a machine that joins or leaves could change it, and the others
	// would send to the old one until they notice.
	if err := inside.LinkSetHardwareAddr(bridge, bridge.Attrs().HardwareAddr); err != nil {
		return fmt.Errorf("set hardware address of bridge %q: %w", bridgeName, err)
	}
	if err := ensureUp(inside, bridge, netip.PrefixFrom(n.Gateway(), 24)); err != nil {
		return err
	}
	host, err := n.ensureVeth(outside, ns, n.hostLink(), hostPeerName, inside, bridge)
	if err != nil {
		return err
	}
	if err := ensureUp(outside, host, netip.PrefixFrom(n.Host(), 24)); err != nil {
		return err
	}
	if err := ensureRoute(inside, bridge, netip.Prefix{}, n.Host()); err != nil {
		return err
	}
	// Routes instead of firewall rules, which would also apply to traffic between machines on the bridge.
	for _, network := range privateNetworks {
		route := &netlink.Route{Dst: ipNet(netip.MustParsePrefix(network)), Type: unix.RTN_UNREACHABLE}
		if err := inside.RouteReplace(route); err != nil {
			return fmt.Errorf("add unreachable route to %s: %w", network, err)
		}
	}
	for _, resolver := range n.Resolvers {
		if err := ensureRoute(inside, bridge, netip.PrefixFrom(resolver, 32), n.Host()); err != nil {
			return err
		}
	}
	if err := inNamespace(ns, func() error {
		for key, value := range map[string]string{
			"ip_forward":                 "1",
			"ip_unprivileged_port_start": "0", // The resolver is not root.
		} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+key, []byte(value), 0o644); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("set up network namespace %q: %w", n.namespaceName(), err)
	}
	return n.masquerade()
}

// EnsureMachine creates what is missing of a machine's network: a namespace with an interface eth0 on the landscape's
// bridge. The namespace outlives the machine's processes, so a machine that restarts keeps its address.
func (n Network) EnsureMachine(_ context.Context, machine string, number int) error {
	landscape, err := netns.GetFromName(n.namespaceName())
	if err != nil {
		return fmt.Errorf("open network namespace %q: %w", n.namespaceName(), err)
	}
	defer landscape.Close() //nolint:errcheck // a descriptor that is only read
	ns, err := ensureNamespace(n.machineNamespaceName(machine))
	if err != nil {
		return err
	}
	defer ns.Close() //nolint:errcheck // a descriptor that is only read
	bridgeSide, err := netlink.NewHandleAt(landscape)
	if err != nil {
		return err
	}
	defer bridgeSide.Close()
	machineSide, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer machineSide.Close()

	bridge, err := bridgeSide.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find bridge %q: %w", bridgeName, err)
	}
	eth0, err := n.ensureVeth(machineSide, landscape, "eth0", "machine"+strconv.Itoa(number), bridgeSide, bridge)
	if err != nil {
		return err
	}
	if err := ensureUp(machineSide, eth0, netip.PrefixFrom(n.Machine(number), 24)); err != nil {
		return err
	}
	if n.IPv6 {
		if err := ensureUp(machineSide, eth0, n.machineIPv6(number)); err != nil {
			return fmt.Errorf("%w; clusters of this landscape were created with IPv6: enable it again (sysctl net.ipv6.conf.default.disable_ipv6=0)", err)
		}
	}
	if err := ensureRoute(machineSide, eth0, netip.Prefix{}, n.Gateway()); err != nil {
		return err
	}
	// No machine has the addresses of load balancers on its interface. The gateway knows the machine that each pool is routed to.
	for cluster := range MaxClusters {
		if err := ensureRoute(machineSide, eth0, n.Pool(cluster), n.Gateway()); err != nil {
			return err
		}
		if err := ensureUnreachable(machineSide, eth0, n.Pool(cluster)); err != nil {
			return err
		}
	}
	return nil
}

// ensureUnreachable lets a machine reject packets from outside to addresses of load balancers that kube-proxy does not translate, or not yet. If the
// machine sent them back to the gateway, the kernel would remember the connection as one without translation, and a client that was a moment too
// early would wait in vain.
func ensureUnreachable(machineSide *netlink.Handle, from netlink.Link, to netip.Prefix) error {
	rule := netlink.NewRule()
	rule.Family, rule.Priority = unix.AF_INET, unreachablePriority
	rule.IifName, rule.Dst, rule.Type = from.Attrs().Name, ipNet(to), unix.RTN_UNREACHABLE
	if err := machineSide.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add rule for packets to %s: %w", to, err)
	}
	return nil
}

// RemoveMachine removes a machine's network. A missing one is no error.
func (n Network) RemoveMachine(machine string) error {
	return removeNamespace(n.machineNamespaceName(machine))
}

// RoutePool routes the load balancer addresses of a cluster to one of its machines, whose kube-proxy handles them.
func (n Network) RoutePool(_ context.Context, cluster, machineNumber int) error {
	landscape, err := netns.GetFromName(n.namespaceName())
	if err != nil {
		return fmt.Errorf("open network namespace %q: %w", n.namespaceName(), err)
	}
	defer landscape.Close() //nolint:errcheck // a descriptor that is only read
	inside, err := netlink.NewHandleAt(landscape)
	if err != nil {
		return err
	}
	defer inside.Close()
	outside, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer outside.Close()
	for link, handle := range map[string]*netlink.Handle{bridgeName: inside, n.hostLink(): outside} {
		device, err := handle.LinkByName(link)
		if err != nil {
			return fmt.Errorf("find interface %q: %w", link, err)
		}
		if err := ensureRoute(handle, device, n.Pool(cluster), n.Machine(machineNumber)); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes everything that Ensure, EnsureMachine and RoutePool created; the host's link only withLink, as that is named by the
// index, which another landscape may have by now. It also removes an incomplete network, and goes on after an error.
func (n Network) Remove(withLink bool) error {
	var errs []error
	if link, err := netlink.LinkByName(n.hostLink()); err == nil && withLink {
		errs = append(errs, netlink.LinkDel(link)) // Its peer, its address and its routes go with it.
	}
	errs = append(errs, n.removeMasquerade())
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name == n.namespaceName() || strings.HasPrefix(name, n.machineNamespaceName("")) {
			errs = append(errs, removeNamespace(name))
		}
	}
	return errors.Join(errs...)
}

func (n Network) ensureVeth(near *netlink.Handle, farNS netns.NsHandle, nearName, farName string, far *netlink.Handle, bridge netlink.Link) (netlink.Link, error) {
	if link, err := near.LinkByName(nearName); err == nil {
		if peer, err := far.LinkByName(farName); err == nil && peer.Attrs().MasterIndex == bridge.Attrs().Index {
			return link, far.LinkSetUp(peer)
		}
		// An interrupted run left it incomplete: start over.
		if err := near.LinkDel(link); err != nil {
			return nil, fmt.Errorf("replace interface %q: %w", nearName, err)
		}
	}
	if stale, err := far.LinkByName(farName); err == nil {
		if err := far.LinkDel(stale); err != nil {
			return nil, fmt.Errorf("replace interface %q: %w", farName, err)
		}
	}
	veth := &netlink.Veth{LinkAttrs: linkAttrs(nearName, bridge.Attrs().MTU), PeerName: farName, PeerNamespace: netlink.NsFd(farNS)}
	if err := near.LinkAdd(veth); err != nil {
		return nil, fmt.Errorf("create interface %q: %w", nearName, err)
	}
	peer, err := far.LinkByName(farName)
	if err != nil {
		return nil, fmt.Errorf("find interface %q: %w", farName, err)
	}
	if err := far.LinkSetMaster(peer, bridge); err != nil {
		return nil, fmt.Errorf("attach interface %q to bridge %q: %w", farName, bridgeName, err)
	}
	if err := far.LinkSetUp(peer); err != nil {
		return nil, err
	}
	return near.LinkByName(nearName)
}

// hostMTU is the smallest MTU of the host's default routes, so that no packet of a machine is too large for the host's uplink.
func hostMTU(h *netlink.Handle) int {
	const ethernet = 1500
	routes, err := h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{}, netlink.RT_FILTER_DST)
	if err != nil {
		return ethernet
	}
	mtu := ethernet
	for _, route := range routes {
		if link, err := h.LinkByIndex(route.LinkIndex); err == nil && link.Attrs().MTU < mtu {
			mtu = link.Attrs().MTU
		}
	}
	return mtu
}

func linkAttrs(name string, mtu int) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, mtu
	return attrs
}

func ensureLink(h *netlink.Handle, link netlink.Link) (netlink.Link, error) {
	name := link.Attrs().Name
	if err := h.LinkAdd(link); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("create interface %q: %w", name, err)
	}
	return h.LinkByName(name)
}

func ensureUp(h *netlink.Handle, link netlink.Link, prefix netip.Prefix) error {
	if lo, err := h.LinkByName("lo"); err == nil {
		if err := h.LinkSetUp(lo); err != nil {
			return err
		}
	}
	addr := &netlink.Addr{IPNet: ipNet(prefix)}
	if prefix.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD // no address is given out twice, and it can be used at once
	}
	if err := h.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("set address %s on interface %q: %w", prefix, link.Attrs().Name, err)
	}
	return h.LinkSetUp(link)
}

func ensureRoute(h *netlink.Handle, link netlink.Link, to netip.Prefix, via netip.Addr) error {
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: via.AsSlice()}
	if to.IsValid() {
		route.Dst = ipNet(to)
	}
	if err := h.RouteReplace(route); err != nil {
		return fmt.Errorf("route %s through %s: %w", to, via, err)
	}
	return nil
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

func ensureNamespace(name string) (netns.NsHandle, error) {
	if ns, err := netns.GetFromName(name); err == nil {
		var stat unix.Statfs_t
		// A name whose mount is gone is an empty file; create it again.
		if unix.Statfs(netnsDir+"/"+name, &stat) == nil && stat.Type == unix.NSFS_MAGIC {
			return ns, nil
		}
		ns.Close() //nolint:errcheck // of no use
	}
	if err := removeNamespace(name); err != nil {
		return netns.None(), err
	}
	var created netns.NsHandle
	err := onOwnThread(func() (err error) {
		created, err = netns.NewNamed(name) // This thread stays in the new namespace, so it is not reused.
		return err
	})
	if err != nil {
		return netns.None(), fmt.Errorf("create network namespace %q: %w", name, err)
	}
	return created, nil
}

func removeNamespace(name string) error {
	path := netnsDir + "/" + name
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func inNamespace(ns netns.NsHandle, do func() error) error {
	return onOwnThread(func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		return do()
	})
}

// onOwnThread runs do on a thread that ends with it, so that do may change the thread's namespaces.
func onOwnThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // Never unlocked: the runtime ends the thread together with the goroutine.
		done <- do()
	}()
	return <-done
}
