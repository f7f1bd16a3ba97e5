package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const gibibyte = 1 << 30

// neededControllers are the control group controllers that the kubelet needs.
var neededControllers = []string{"cpu", "cpuset", "memory", "pids"}

// Preflight returns every reason why this host cannot run a landscape in dir that needs so many bytes of memory and disk more than it uses
// now, each with what to do. It changes nothing but for kernel modules, which it loads.
func Preflight(dir string, memory, disk int64) error {
	if os.Geteuid() != 0 {
		return errors.New("a landscape starts containers and networks, which only root may do: run this as root, for example with sudo")
	}
	return errors.Join(checkFilesystems("/proc/filesystems", loadModule), checkControllers(), checkNetwork(),
		checkDisk(dir, disk), checkMemory("/proc/meminfo", memory))
}

// checkFilesystems checks for the overlay file system. Where that is a module, as on Debian, it is not loaded before the first container.
func checkFilesystems(path string, load func(module string) error) error {
	const needed = "overlay"
	var loadErr error
	for try := range 2 {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if slices.Contains(strings.Fields(string(data)), needed) {
			return nil
		}
		if try == 0 {
			loadErr = load(needed)
		}
	}
	return fmt.Errorf("the kernel has no overlay file system, which containers are made of (%w): load its module with: modprobe overlay",
		cmp.Or(loadErr, errors.New("not available after loading its module")))
}

// loadModule loads a kernel module, with the program that the kernel itself would use.
func loadModule(name string) error {
	if out, err := exec.Command("/sbin/modprobe", name).CombinedOutput(); err != nil {
		return fmt.Errorf("load module %s: %w %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func checkControllers() error {
	var missing []string
	if IsCgroupV2() {
		data, err := os.ReadFile(filepath.Join(CgroupRoot, "cgroup.controllers"))
		if err != nil {
			return err
		}
		missing = without(neededControllers, strings.Fields(string(data)))
	} else {
		for _, controller := range neededControllers {
			if _, err := os.Stat(filepath.Join(CgroupRoot, controller, "cgroup.procs")); err != nil {
				missing = append(missing, controller)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the control group controllers %s are not mounted below %s, and the kubelet needs them: enable them in the kernel's command line or mount them",
			strings.Join(missing, ", "), CgroupRoot)
	}
	return nil
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// checkNetwork creates the kinds of interfaces and rules of a landscape's network, in a network namespace of its own that ends with the
// thread that created it.
func checkNetwork() error {
	return onOwnThread(func() error {
		ns, err := netns.New()
		if err != nil {
			return fmt.Errorf("the kernel does not allow creating network namespaces (%w): is this a container without CAP_SYS_ADMIN?", err)
		}
		defer ns.Close() //nolint:errcheck // a descriptor that is only read
		for _, link := range []netlink.Link{
			&netlink.Bridge{LinkAttrs: linkAttrs("probe0", 1500)},
			&netlink.Veth{LinkAttrs: linkAttrs("probe1", 1500), PeerName: "probe2"},
			&netlink.Vxlan{LinkAttrs: linkAttrs("probe3", 1400), VxlanId: 1, Port: 8472},
		} {
			if err := netlink.LinkAdd(link); errors.Is(err, unix.EPERM) {
				return errors.New("this process may not create network interfaces: it runs as root, but without CAP_NET_ADMIN")
			} else if err != nil {
				return fmt.Errorf("the kernel cannot create a %s interface (%w): load its module with: modprobe %s", link.Type(), err, link.Type())
			}
		}
		probe := Network{Landscape: "probe"}
		if err := probe.masquerade(); err != nil {
			return fmt.Errorf("the kernel does not accept nftables rules with NAT (%w): load their modules with: modprobe -a nf_tables nft_masq nft_chain_nat", err)
		}
		return nil
	})
}

func checkDisk(dir string, needed int64) error {
	for parent := dir; ; parent = filepath.Dir(parent) {
		var stat unix.Statfs_t
		if err := unix.Statfs(parent, &stat); errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			return fmt.Errorf("read the file system of %s: %w", parent, err)
		}
		if stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
			return fmt.Errorf("%s is on an overlay file system, on which containers' layers cannot be stacked: choose a directory on a disk with --dir", dir)
		}
		if free := int64(stat.Bavail) * stat.Bsize; free < needed { //nolint:gosec // no file system has 2^63 bytes
			return fmt.Errorf("%s has %.1f GiB of free disk and the landscape needs %d GiB more: free some or choose another directory with --dir",
				parent, float64(free)/gibibyte, needed/gibibyte)
		}
		return nil
	}
}

func checkMemory(path string, needed int64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil && kib<<10 < needed {
			return fmt.Errorf("%.1f GiB of memory are available and %d GiB are needed: end other processes first",
				float64(kib<<10)/gibibyte, needed/gibibyte)
		}
	}
	return nil
}
