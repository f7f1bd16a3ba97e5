// Command install-cni copies files to a node: a CNI plugin's binary and its configuration. Each argument is SOURCE=TARGET.
// A target that has the source's content already is left alone; any other is replaced whole, so that a container runtime
// never sees half a file. With --after=FILE it first waits for that file: a node is ready as soon as it has a CNI
// configuration, which must not be before the plugin works.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "install-cni:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: install-cni SOURCE=TARGET..., for example /etc/flannel/cni-conf.json=/etc/cni/net.d/10-flannel.conflist")
	}
	for _, arg := range args {
		if file, ok := strings.CutPrefix(arg, "--after="); ok {
			if err := await(file); err != nil {
				return fmt.Errorf("wait for %s: %w", file, err)
			}
			continue
		}
		source, target, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not of the form SOURCE=TARGET", arg)
		}
		if err := install(source, target); err != nil {
			return err
		}
	}
	return nil
}

// await returns when the file is there. Its directory must exist.
func await(file string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close() // nothing is read any more
	if err := watcher.Add(filepath.Dir(file)); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			return err
		}
	}
}

func install(source, target string) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(target); err == nil && bytes.Equal(have, content) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The dot keeps the container runtime from reading it before it is complete.
	temp, err := os.CreateTemp(filepath.Dir(target), ".install-cni-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // gone after the rename
	if _, err := temp.Write(content); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := errors.Join(temp.Chmod(info.Mode().Perm()), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), target)
}
