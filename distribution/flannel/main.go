// Command install-cni copies files to a node: a CNI plugin's binary and its configuration. Each argument is SOURCE=TARGET.
// A target that has the source's content already is left alone; any other is replaced whole, so that a container runtime
// never sees half a file.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
