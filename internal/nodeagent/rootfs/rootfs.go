// Package rootfs reads and writes files of a machine, below a directory that is "/" but in tests.
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

// Path is where a file of the machine is for this process.
func (d Dir) Path(path string) string { return filepath.Join(string(d), path) }

// Read returns the content of a file.
func (d Dir) Read(path string) ([]byte, error) { return os.ReadFile(d.Path(path)) }

// Exists tells whether there is a file, directory or link.
func (d Dir) Exists(path string) bool {
	_, err := os.Lstat(d.Path(path))
	return err == nil
}

// Same tells whether a file has this content and these permission bits.
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

// Write puts a file in place in one step: whoever reads it sees all of the old content or all of the new, and the new one survives a
// power cut.
func (d Dir) Write(path string, data []byte, mode fs.FileMode) error {
	return d.WriteFrom(path, bytes.NewReader(data), mode)
}

// WriteFrom is Write for content that is too large to hold.
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

// Staged is content that is written beside its place, where nobody looks for it.
type Staged struct{ temp, target string }

// Stage is WriteFrom up to where the file gets its place, for content of which only its end tells whether it is good.
func (d Dir) Stage(path string, content io.Reader, mode fs.FileMode) (_ Staged, err error) {
	target := d.Path(path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return Staged{}, err
	}
	// By the name of the file, so that what a process left that was killed goes with the next one.
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

// Commit puts the file in its place.
func (s Staged) Commit() error { return os.Rename(s.temp, s.target) }

// Discard removes what was written.
func (s Staged) Discard() error { return os.Remove(s.temp) }

// Update writes a file if it is not as it should be, and tells whether it wrote.
func (d Dir) Update(path string, data []byte, mode fs.FileMode) (bool, error) {
	same, err := d.Same(path, data, mode)
	if same || err != nil {
		return false, err
	}
	return true, d.Write(path, data, mode)
}

// Remove removes a file, if it is there.
func (d Dir) Remove(path string) error {
	if err := os.Remove(d.Path(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveEmptyDir removes a directory that holds nothing, and leaves any other.
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
