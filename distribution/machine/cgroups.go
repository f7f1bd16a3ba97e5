package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchy is a line of /proc/self/cgroup.
type hierarchy struct {
	id          string // "0" is cgroup v2
	controllers string // "cpu,cpuacct", "name=systemd", "" for v2
	path        string // where this process is, below the root of its cgroup namespace
}

func parseHierarchies(text string) ([]hierarchy, error) {
	var found []hierarchy
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("cannot read line %q of /proc/self/cgroup", line)
		}
		found = append(found, hierarchy{parts[0], parts[1], parts[2]})
	}
	return found, nil
}

// cgroupMount is something to mount below /sys/fs/cgroup.
type cgroupMount struct {
	dir    string // "" is /sys/fs/cgroup itself
	fstype string
	data   string
	links  []string // names of single controllers of a joint hierarchy
}

// planCgroups decides what a machine mounts. With any v1 controller it is v1: a v2 hierarchy beside it stays out, because
// container runtimes do not put containers into cgroups of it, so that all machines of a host would share one.
func planCgroups(hierarchies []hierarchy) ([]cgroupMount, error) {
	var mounts []cgroupMount
	named := false
	for _, h := range hierarchies {
		if h.id == "0" {
			continue
		}
		name, isNamed := strings.CutPrefix(h.controllers, "name=")
		if isNamed {
			named = named || name == "systemd"
			mounts = append(mounts, cgroupMount{dir: name, fstype: "cgroup", data: "none," + h.controllers})
			continue
		}
		m := cgroupMount{dir: h.controllers, fstype: "cgroup", data: h.controllers}
		if strings.Contains(h.controllers, ",") {
			m.links = strings.Split(h.controllers, ",")
		}
		mounts = append(mounts, m)
	}
	if len(mounts) == 0 {
		return []cgroupMount{{fstype: "cgroup2"}}, nil
	}
	if !named {
		return nil, errors.New("this host has cgroup v1 without the hierarchy name=systemd, which systemd needs; " +
			"on the host, run: mkdir -p /sys/fs/cgroup/systemd && mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd")
	}
	return mounts, nil
}

// sharedWithHost are the hierarchies in which the container was not given a cgroup of its own. Inside a namespace that a runtime
// made, the path is "/" as it should be.
func sharedWithHost(hierarchies []hierarchy, hostNamespace bool) []string {
	var shared []string
	for _, h := range hierarchies {
		if hostNamespace && h.id != "0" && h.path == "/" {
			shared = append(shared, h.controllers)
		}
	}
	return shared
}

// initCgroupNamespace is the inode that the kernel gives the host's cgroup namespace (PROC_CGROUP_INIT_INO).
const initCgroupNamespace = "cgroup:[4026531835]"

// initArguments tell systemd, which reads its arguments as a kernel command line in a container, to leave out the v2 hierarchy
// that planCgroups left out; it would mount it by itself.
func initArguments(mounts []cgroupMount) []string {
	if mounts[0].fstype == "cgroup2" {
		return nil
	}
	return []string{"systemd.unified_cgroup_hierarchy=0", "systemd.legacy_systemd_cgroup_controller=1"}
}

// ownCgroups enters a cgroup namespace whose root is this container, and mounts it, writable. It returns arguments for init.
func ownCgroups() ([]string, error) {
	text, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("read cgroups: %w", err)
	}
	hierarchies, err := parseHierarchies(string(text))
	if err != nil {
		return nil, err
	}
	mounts, err := planCgroups(hierarchies)
	if err != nil {
		return nil, err
	}
	namespace, err := os.Readlink("/proc/thread-self/ns/cgroup")
	if err != nil {
		return nil, fmt.Errorf("read cgroup namespace: %w", err)
	}
	shared := sharedWithHost(hierarchies, namespace == initCgroupNamespace)
	if slices.Contains(shared, "name=systemd") {
		return nil, errors.New("the container has no cgroup of its own: start it with a cgroup path or a private cgroup namespace")
	}
	if len(shared) > 0 {
		fmt.Fprintf(os.Stderr, "machine-init: the container has no cgroup of its own for: %s\n", strings.Join(shared, " "))
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return nil, fmt.Errorf("enter a cgroup namespace: %w; run the container privileged", err)
	}
	// What the runtime mounted shows the host's view, or is read-only.
	for syscall.Unmount(cgroupRoot, syscall.MNT_DETACH) == nil {
	}
	return initArguments(mounts), mountCgroups(mounts)
}

func mountCgroups(mounts []cgroupMount) error {
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	if mounts[0].dir != "" {
		if err := syscall.Mount("tmpfs", cgroupRoot, "tmpfs", flags, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", cgroupRoot, err)
		}
	}
	for _, m := range mounts {
		dir := filepath.Join(cgroupRoot, m.dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("cgroup", dir, m.fstype, flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w; run the container privileged", dir, err)
		}
		for _, link := range m.links {
			if err := os.Symlink(m.dir, filepath.Join(cgroupRoot, link)); err != nil {
				return err
			}
		}
	}
	return nil
}
