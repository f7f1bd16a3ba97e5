package announcer

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what takes milliseconds on an idle computer.
const patience = time.Minute

// pair makes two network namespaces with a cable between them, and leaves the test in the first. The thread ends with the test.
func pair(t *testing.T) (enter func(peer bool)) {
	t.Helper()
	runtime.LockOSThread()
	var spaces [2]int
	for i := range spaces {
		if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, unix.EPERM) {
			t.Skip("network namespaces need root")
		} else if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		spaces[i] = fd
	}
	enter = func(peer bool) {
		fd := spaces[0]
		if peer {
			fd = spaces[1]
		}
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			t.Fatal(err)
		}
	}
	enter(false)
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "node"}, PeerName: "peer", PeerNamespace: netlink.NsFd(spaces[1])}); err != nil {
		t.Fatal(err)
	}
	enter(true)
	bringUp(t, "peer", false, "192.0.2.2/24", "2001:db8::2/64")
	enter(false)
	bringUp(t, "node", true, "192.0.2.1/24", "2001:db8::1/64")
	return enter
}

// bringUp adds addresses to an interface and sets it up. It waits for the second end of a cable until packets pass.
func bringUp(t *testing.T, name string, second bool, addresses ...string) {
	t.Helper()
	link, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		a, err := netlink.ParseAddr(address)
		if err != nil {
			t.Fatal(err)
		}
		if a.IP.To4() == nil {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			t.Fatal(err)
		}
	}
	updates, done := make(chan netlink.LinkUpdate, 16), make(chan struct{})
	defer close(done)
	if err := netlink.LinkSubscribe(updates, done); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	for second {
		select {
		case update := <-updates:
			if update.Attrs().Name == name && update.Attrs().OperState == netlink.OperUp {
				return
			}
		case <-time.After(patience):
			t.Fatalf("interface %s is not up", name)
		}
	}
}

// listen opens a socket for packets of a protocol in the current network namespace.
func listen(t *testing.T, protocol int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(bigEndian(uint16(protocol))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// await reads packets until one is as wanted.
func await(t *testing.T, fd int, what string, wanted func([]byte) bool) {
	t.Helper()
	buffer := make([]byte, 2048)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatalf("no packet: %s (%v)", what, err)
		}
		if wanted(buffer[:n]) {
			return
		}
	}
	t.Fatalf("no packet: %s", what)
}

// send sends a datagram to an address, and says whether the kernel could.
func send(address netip.Addr) error {
	c, err := net.Dial("udp", net.JoinHostPort(address.String(), "9"))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_, err = c.Write([]byte("x"))
	return err
}

// Real packets: the peer learns who has an address, without having asked, and its questions are answered while the address is held.
func TestInterfacesIPv4(t *testing.T) {
	enter := pair(t)
	address := netip.MustParseAddr("192.0.2.10")
	own, err := linkOf(address)
	if err != nil {
		t.Fatal(err)
	}
	mac := own.Attrs().HardwareAddr
	enter(true)
	peer := listen(t, unix.ETH_P_ARP)
	enter(false)
	if err := (interfaces{}).Hold(address); err != nil {
		t.Fatal(err)
	}
	for _, operation := range []byte{1, 2} {
		await(t, peer, "an announcement", func(p []byte) bool {
			return len(p) >= 28 && p[7] == operation && string(p[8:14]) == string(mac) && net.IP(p[14:18]).String() == "192.0.2.10" && net.IP(p[24:28]).String() == "192.0.2.10"
		})
	}
	enter(true)
	if err := send(address); err != nil {
		t.Fatal(err)
	}
	await(t, peer, "the answer of the kernel", func(p []byte) bool {
		return len(p) >= 28 && p[7] == 2 && net.IP(p[14:18]).String() == "192.0.2.10" && net.IP(p[24:28]).String() == "192.0.2.2"
	})

	enter(false)
	checkAddress(t, address, true)
	if err := (interfaces{}).Hold(address); err != nil {
		t.Fatalf("it is not held longer: %v", err)
	}
	for range 2 { // also if it is dropped already
		if err := (interfaces{}).Drop(address); err != nil {
			t.Fatal(err)
		}
	}
	checkAddress(t, address, false)
	if err := (interfaces{}).Hold(netip.MustParseAddr("198.51.100.1")); err == nil {
		t.Error("an address of another network is held")
	}
}

func TestInterfacesIPv6(t *testing.T) {
	enter := pair(t)
	address := netip.MustParseAddr("2001:db8::10")
	enter(true)
	peer := listen(t, unix.ETH_P_IPV6)
	enter(false)
	if err := (interfaces{}).Hold(address); err != nil {
		t.Fatal(err)
	}
	await(t, peer, "an advertisement", func(p []byte) bool { // after the header of IPv6: 40 bytes, whose eighth is the hop limit
		return len(p) >= 72 && p[7] == 255 && p[40] == 136 && p[44]&0x20 != 0 && net.IP(p[48:64]).String() == "2001:db8::10" && p[64] == 2
	})
	checkAddress(t, address, true)
	if err := (interfaces{}).Drop(address); err != nil {
		t.Fatal(err)
	}
	checkAddress(t, address, false)
}

// checkAddress checks whether an interface has an address, and that it ends when nobody renews it.
func checkAddress(t *testing.T, address netip.Addr, want bool) {
	t.Helper()
	all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	has := false
	for _, a := range all {
		if a.IP.String() == address.String() {
			has = true
			if a.ValidLft <= 0 || a.ValidLft > int(addressLifetime.Seconds()) {
				t.Errorf("the lifetime of %s is %d", address, a.ValidLft)
			}
		}
	}
	if has != want {
		t.Errorf("the node has %s: %t, want %t", address, has, want)
	}
}
