package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// AwaitPath returns when path exists, or ctx is done. It watches the parent directories, which may be created meanwhile.
func AwaitPath(ctx context.Context, path string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close() //nolint:errcheck // nothing is read any more
	for {
		// The watch starts before the check, so that nothing created in between is missed.
		parent := path
		for {
			parent = filepath.Dir(parent)
			err := watcher.Add(parent)
			if err == nil {
				break
			}
			if !errors.Is(err, os.ErrNotExist) || parent == filepath.Dir(parent) {
				return fmt.Errorf("watch %s: %w", parent, err)
			}
		}
		if _, err := os.Lstat(path); err == nil {
			return nil
		}
		if parent != filepath.Dir(path) {
			if _, err := os.Lstat(nextDown(parent, path)); err == nil {
				continue // The next directory exists by now.
			}
		}
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			return fmt.Errorf("watch %s: %w", parent, err)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", path, context.Cause(ctx))
		}
	}
}

// nextDown is the entry of parent that is path or one of its parents.
func nextDown(parent, path string) string {
	for filepath.Dir(path) != parent {
		path = filepath.Dir(path)
	}
	return path
}
