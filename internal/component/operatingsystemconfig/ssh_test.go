package operatingsystemconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whoever is logged in when SSH access is disabled must not stay, whichever version of OpenSSH the machine has.
func TestSSHOffEndsSessions(t *testing.T) {
	dir := t.TempDir()
	arguments := filepath.Join(dir, "arguments")
	for name, body := range map[string]string{"systemctl": "exit 1", "pkill": `printf '%s\n' "$@" >` + arguments} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+body+"\n"), 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
	}
	script := exec.CommandContext(t.Context(), "/bin/bash")
	script.Stdin, script.Env = strings.NewReader(sshOff), []string{"PATH=" + dir}
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(arguments)
	if err != nil {
		t.Fatal(err)
	}
	exact, pattern, _ := strings.Cut(strings.TrimSpace(string(got)), "\n")
	if exact != "-x" {
		t.Fatalf("pkill %q matches other processes, too", got)
	}
	matches := regexp.MustCompile("^(" + pattern + ")$").MatchString
	for process, ends := range map[string]bool{"sshd": true, "sshd-session": true, "sshd-auth": true, "sshd-ensurer": false, "ssh": false} {
		if matches(process) != ends {
			t.Errorf("pkill %q ends %s: %t, want %t", got, process, !ends, ends)
		}
	}
}
