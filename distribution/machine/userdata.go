package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// paths of user data; tests have others.
type paths struct {
	userdata string // the script that the machine was created with, perhaps read-only and not executable
	copy     string // the script that runs
	done     string // exists once it has run
}

var userdataPaths = paths{
	userdata: "/etc/machine/userdata",
	copy:     "/run/machine/userdata",
	done:     "/var/lib/machine/userdata.done",
}

// runUserdata runs the script once per machine. If it fails it runs again at the next boot, as it may have been only half way.
func runUserdata(p paths, stdout, stderr io.Writer) error {
	if _, err := os.Stat(p.done); err == nil {
		return nil
	}
	script, err := os.ReadFile(p.userdata)
	if err != nil {
		return fmt.Errorf("read user data: %w", err)
	}
	if !bytes.HasPrefix(script, []byte("#!")) {
		return fmt.Errorf("user data is not a script: %s starts with %q, not with #! and an interpreter", p.userdata, firstLine(script))
	}
	if err := os.MkdirAll(filepath.Dir(p.copy), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(p.copy, script, 0o700); err != nil {
		return fmt.Errorf("copy user data: %w", err)
	}
	cmd := exec.Command(p.copy)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", stdout, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("user data failed: %w; its output is in: journalctl -u machine-userdata", err)
	}
	if err := os.MkdirAll(filepath.Dir(p.done), 0o700); err != nil {
		return err
	}
	return os.WriteFile(p.done, nil, 0o600)
}

// firstLine is the first line of data, for an error.
func firstLine(data []byte) string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(line[:min(len(line), 40)])
}
