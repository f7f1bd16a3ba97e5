package distribution

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a lock that another run holds is tried again; the kernel has no wait that a context can cancel.
const lockPoll = 100 * time.Millisecond

var errLocked = errors.New("locked by another run")

// lock reserves an artifact for one process. It is released with the end of the process.
type lock struct{ file *os.File }

func (d *Distribution) lockFile(name string) string {
	return filepath.Join(d.cache, ".locks", name)
}

// tryLock returns errLocked if another process holds the lock.
func (d *Distribution) tryLock(name string) (*lock, error) {
	path := d.lockFile(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(err, f.Close())
	}
	return &lock{f}, nil
}

// waitLock calls waiting once if it has to wait.
func (d *Distribution) waitLock(ctx context.Context, name string, waiting func()) (*lock, error) {
	for first := true; ; first = false {
		l, err := d.tryLock(name)
		if !errors.Is(err, errLocked) {
			return l, err
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another run to build %s: %w", name, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

func (l *lock) release() error { return l.file.Close() }

// tempRoot is where artifacts are built, on the same file system as the cache so that they can be renamed into it.
func (d *Distribution) tempRoot() string { return filepath.Join(d.cache, ".tmp") }

// tempDir is the build directory of an artifact; it belongs to the process with its lock.
func (d *Distribution) tempDir(name string) string { return filepath.Join(d.tempRoot(), name) }

// sweep removes leftovers of interrupted runs. A directory whose lock is held belongs to a running build.
func (d *Distribution) sweep() error {
	entries, err := os.ReadDir(d.tempRoot())
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	var errs []error
	for _, e := range entries {
		l, err := d.tryLock(e.Name())
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(d.tempDir(e.Name())), l.release())
	}
	return errors.Join(errs...)
}
