// Command machine-init is the entry point of the machine image: it turns a privileged container into something that
// systemd can boot, on hosts with cgroup v1 and v2, and becomes /sbin/init. As "machine-init userdata" it is what the unit
// machine-userdata.service runs.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

const usage = `Examples:
  machine-init             # as the first process of a container: prepare it and boot /sbin/init
  machine-init userdata    # run /etc/machine/userdata, once per machine

machine-init makes mounts shared, gives the machine a cgroup root of its own, mounts what is missing of /run, /run/lock
and /tmp, writes a machine ID and containerd's settings for this kernel, and becomes /sbin/init.
The container must be privileged.
`

func main() {
	var err error
	switch {
	case len(os.Args) == 1:
		err = boot()
	case len(os.Args) == 2 && os.Args[1] == "userdata":
		err = runUserdata(userdataPaths, os.Stdout, os.Stderr)
	case len(os.Args) == 2 && (os.Args[1] == "--help" || os.Args[1] == "-h"):
		_, err = os.Stdout.WriteString(usage)
	default:
		err = errors.New("unknown arguments; see: machine-init --help")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "machine-init: "+err.Error())
		os.Exit(1)
	}
}

// boot ends in /sbin/init, or with an error.
func boot() error {
	if os.Getpid() != 1 {
		return errors.New("boots a machine and must be its first process: run the image as a privileged container")
	}
	// A cgroup namespace belongs to a thread; the one that enters it must be the one that becomes init.
	runtime.LockOSThread()

	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w; run the container privileged", err)
	}
	arguments, err := ownCgroups()
	if err != nil {
		return err
	}
	if err := mountScratch(); err != nil {
		return err
	}
	if err := ensureKmsg("/dev/kmsg"); err != nil {
		return err
	}
	if err := ensureMachineID("/etc/machine-id"); err != nil {
		return err
	}
	if err := configureContainerd("/etc/containerd/conf.d/10-machine.toml"); err != nil {
		return err
	}
	// A node forwards packets; the setting belongs to the machine's own network namespace.
	for _, file := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"} {
		if err := os.WriteFile(file, []byte("1\n"), 0o644); err != nil && !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(os.Stderr, "machine-init: cannot enable forwarding: %v\n", err)
		}
	}
	// systemd leaves alone what a container cannot do when it sees this variable.
	env := append(os.Environ(), "container=oci")
	return fmt.Errorf("start /sbin/init: %w", syscall.Exec("/sbin/init", append([]string{"/sbin/init"}, arguments...), env))
}
