// Package rootfs reads and writes files of a machine, below a directory that is "/" except in tests.
package rootfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is the root directory of a machine.
type Dir string

// Path is the path of a file of the machine for this process.
func (d Dir) Path(path string) string { return filepath.Join(string(d), path) }

// Read returns the content of a file.
func (d Dir) Read(path string) ([]byte, error) { return os.ReadFile(d.Path(path)) }

// Exists reports whether there is a file, directory or link.
func (d Dir) Exists(path string) bool {
	_, err := os.Lstat(d.Path(path))
	return err == nil
}

// Same reports whether a file has this content and these permission bits.
func (d Dir) Same(path string, data []byte, mode fs.FileMode) (bool, error) {
	info, err := os.Stat(d.Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm() != mode.Perm() || info.Size() != int64(len(data)) {
		return false, nil
	}
	have, err := d.Read(path)
	return bytes.Equal(have, data), err
}

// Write replaces a file atomically: a reader sees all of the old content or all of the new, and the new one survives a power cut.
func (d Dir) Write(path string, data []byte, mode fs.FileMode) error {
	return d.WriteFrom(path, bytes.NewReader(data), mode)
}

// WriteFrom is Write for content that is too large to hold in memory.
func (d Dir) WriteFrom(path string, content io.Reader, mode fs.FileMode) error {
	staged, err := d.Stage(path, content, mode)
	if err != nil {
		return err
	}
	if err := staged.Commit(); err != nil {
		return errors.Join(err, staged.Discard())
	}
	return nil
}

// Staged is a file that was written under a temporary name beside its target.
type Staged struct{ temp, target string }

// Stage is WriteFrom without the last step, in which the file gets its name, for content that can only be verified at its end.
func (d Dir) Stage(path string, content io.Reader, mode fs.FileMode) (_ Staged, err error) {
	target := d.Path(path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return Staged{}, err
	}
	// The name depends only on the target, so that a file which a killed process left is removed by the next one.
	name := filepath.Join(filepath.Dir(target), ".gardener-"+filepath.Base(target))
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Staged{}, err
	}
	temp, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Staged{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), temp.Close(), os.Remove(name))
		}
	}()
	if _, err = io.Copy(temp, content); err != nil {
		return Staged{}, err
	}
	if err = errors.Join(temp.Chmod(mode.Perm()), temp.Sync()); err != nil {
		return Staged{}, err
	}
	return Staged{name, target}, temp.Close()
}

// Commit replaces the target.
func (s Staged) Commit() error { return os.Rename(s.temp, s.target) }

// Discard removes the temporary file.
func (s Staged) Discard() error { return os.Remove(s.temp) }

// Update writes a file if it differs, and reports whether it wrote.
func (d Dir) Update(path string, data []byte, mode fs.FileMode) (bool, error) {
	same, err := d.Same(path, data, mode)
	if same || err != nil {
		return false, err
	}
	return true, d.Write(path, data, mode)
}

// MakeDir creates a directory and its parents, if they do not exist.
func (d Dir) MakeDir(path string) error { return os.MkdirAll(d.Path(path), 0o755) }

// Remove removes a file, if it exists.
func (d Dir) Remove(path string) error {
	if err := os.Remove(d.Path(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveEmptyDir removes a directory if it is empty.
func (d Dir) RemoveEmptyDir(path string) error {
	entries, err := os.ReadDir(d.Path(path))
	if errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return d.Remove(path)
}
