package discoveryserver

import (
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// files is a value that is read from files, and read again when one of them has changed. That is noticed when the value is used, which costs less
// than it takes to answer a request. If the new content is invalid, the value stays.
type files[T any] struct {
	paths []string
	parse func(contents [][]byte) (T, error)
	log   logr.Logger

	mu    sync.Mutex
	seen  []os.FileInfo
	value T
}

// readFiles reads the value for the first time. Parse gets the contents in the order of the paths.
func readFiles[T any](log logr.Logger, parse func(contents [][]byte) (T, error), paths ...string) (*files[T], error) {
	f := &files[T]{paths: paths, parse: parse, log: log}
	f.seen = f.stat()
	var err error
	f.value, err = f.read()
	return f, err
}

// get returns the value.
func (f *files[T]) get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.stat()
	if slices.EqualFunc(f.seen, now, same) {
		return f.value
	}
	f.seen = now // what cannot be read is tried again when it changes
	value, err := f.read()
	if err != nil {
		f.log.Error(err, "Keeping what was read before from files that have changed", "paths", f.paths)
		return f.value
	}
	f.log.Info("Using changed files", "paths", f.paths)
	f.value = value
	return f.value
}

func (f *files[T]) read() (value T, err error) {
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		if contents[i], err = os.ReadFile(path); err != nil {
			return value, err
		}
	}
	return f.parse(contents)
}

// stat returns the state of the files, nil for those that cannot be read.
func (f *files[T]) stat() []os.FileInfo {
	infos := make([]os.FileInfo, len(f.paths))
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil { // a volume replaces the directory behind a symbolic link
			infos[i] = info
		}
	}
	return infos
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
