package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CgroupRoot is where control groups are mounted.
const CgroupRoot = "/sys/fs/cgroup"

// IsCgroupV2 reports whether the host uses control groups version 2 only, by the file system at CgroupRoot.
func IsCgroupV2() bool {
	var stat unix.Statfs_t
	return unix.Statfs(CgroupRoot, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC
}

// cgroupDirs are the directories of a control group in every mounted hierarchy.
func cgroupDirs(group string) []string {
	candidates, _ := filepath.Glob(filepath.Join(CgroupRoot, "*", group))
	candidates = append(candidates, filepath.Join(CgroupRoot, group))
	return slices.DeleteFunc(candidates, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "cgroup.procs"))
		return err != nil
	})
}

// CgroupProcesses returns the ids of all processes in a control group or below it, in any hierarchy, sorted.
func CgroupProcesses(group string) []int {
	seen := map[int]bool{}
	for _, dir := range cgroupDirs(group) {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() != "cgroup.procs" {
				return nil
			}
			data, _ := os.ReadFile(path)
			for _, field := range strings.Fields(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					seen[pid] = true
				}
			}
			return nil
		})
	}
	pids := make([]int, 0, len(seen))
	for pid := range seen {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// RemoveCgroup removes a control group and those below it in every hierarchy. Its processes must have ended.
func RemoveCgroup(group string) error {
	var errs []error
	for _, dir := range cgroupDirs(group) {
		var below []string

		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		slices.Reverse(below) // Children come before their parents.
		for _, path := range below {
			if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
				errs = append(errs, fmt.Errorf("remove control group %s: %w", path, err))
			}
		}
	}
	return errors.Join(errs...)
}

// ProcessesWithArgument returns the ids of all processes that have an argument starting with the given prefix, but for
// the calling one.
func ProcessesWithArgument(prefix string) []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			cmdline, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline")) // If this fails, it has ended meanwhile.
			if slices.ContainsFunc(strings.Split(string(cmdline), "\x00"), func(arg string) bool { return strings.HasPrefix(arg, prefix) }) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Kill sends SIGKILL to processes and returns when all of them have ended or ctx is done.
func Kill(ctx context.Context, pids []int) error {
	var errs []error
	for _, pid := range pids {
		if err := killAndAwait(ctx, pid); err != nil {
			errs = append(errs, fmt.Errorf("kill process %d: %w", pid, err))
		}
	}
	return errors.Join(errs...)
}

func killAndAwait(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if isNoProcess(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // a descriptor that is only read
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	}
	return awaitExit(ctx, fd)
}

// isNoProcess reports whether an error of pidfd_open says that there is no such process, or only a thread: a process that ends is one for a moment. Kernels
// before 6.15 say EINVAL then, later ones ENOENT.
func isNoProcess(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT)
}

// HasEnded reports whether a process has ended, also if its parent has not waited for it yet.
func HasEnded(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)                                                            //nolint:errcheck // a descriptor that is only read
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // descriptors are small
	return err == nil && ready > 0
}

// AwaitExit returns when a process has ended, or ctx is done.
func AwaitExit(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if isNoProcess(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // a descriptor that is only read
	return awaitExit(ctx, fd)
}

// awaitExit returns when the process behind a pidfd has ended, or ctx is done.
func awaitExit(ctx context.Context, fd int) error {
	const wakeUp = 200 // milliseconds after which ctx is checked again
	for {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wakeUp) //nolint:gosec // descriptors are small
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ready > 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}
