package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// scratch are the directories that a machine starts with empty.
var scratch = []struct {
	dir, data string
	flags     uintptr
}{
	{"/run", "mode=755", syscall.MS_NOSUID | syscall.MS_NODEV},
	{"/run/lock", "mode=1777", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
	{"/tmp", "mode=1777", syscall.MS_NOSUID | syscall.MS_NODEV},
}

// mountScratch mounts them, except for those that the runtime mounted.
func mountScratch() error {
	for _, s := range scratch {
		mounted, err := isMountPoint(s.dir)
		if err != nil {
			return err
		}
		if mounted {
			continue
		}
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", s.dir, "tmpfs", s.flags, s.data); err != nil {
			return fmt.Errorf("mount %s: %w", s.dir, err)
		}
	}
	return nil
}

func isMountPoint(dir string) (bool, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, fmt.Errorf("read mounts: %w", err)
	}
	return mountedAt(string(text), dir), nil
}

// mountedAt looks for a mount point in the text of /proc/self/mountinfo.
func mountedAt(mountinfo, dir string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == dir {
			return true
		}
	}
	return false
}

// ensureKmsg provides the kernel's log, in which the kubelet looks for processes that ran out of memory.
func ensureKmsg(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	const kmsg = 1<<8 | 11
	if syscall.Mknod(path, syscall.S_IFCHR|0o600, kmsg) == nil {
		return nil
	}
	return os.Symlink("/dev/null", path) // the kubelet starts, and reads nothing
}

// ensureMachineID gives a machine its identity at its first boot; the image has an empty file.
func ensureMachineID(path string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if id := string(bytes.TrimSpace(old)); id != "" && id != "uninitialized" {
		return nil
	}
	id := make([]byte, 16)
	rand.Read(id)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // a random UUID
	return os.WriteFile(path, []byte(hex.EncodeToString(id)+"\n"), 0o444)
}

const capSysResource = 24

// hasCapability reads the effective capabilities in the text of /proc/self/status.
func hasCapability(status string, number uint) (bool, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return caps&(1<<number) != 0, err
		}
	}
	return false, errors.New("/proc/self/status has no capabilities")
}

// containerdSettings are the settings that depend on the capabilities of this machine.
func containerdSettings(mayLowerOOMScore bool) string {
	text := "# Written by machine-init at each boot.\nversion = 3\n"
	if !mayLowerOOMScore {
		text += "\n# Without CAP_SYS_RESOURCE no score can be lowered, and no container that asks for it would start.\n" +
			"[plugins.'io.containerd.cri.v1.runtime']\n  restrict_oom_score_adj = true\n"
	}
	return text
}

func configureContainerd(path string) error {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	may, err := hasCapability(string(status), capSysResource)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(containerdSettings(may)), 0o644)
}
