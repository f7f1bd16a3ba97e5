package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	source, target := filepath.Join(dir, "plugin"), filepath.Join(dir, "out")
	write(t, source, "new", 0o755)
	write(t, target, "old content", 0o600)

	if err := run([]string{source + "=" + target}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(target)
	if err != nil || string(got) != "new" {
		t.Errorf("content = %q, %v, want %q", got, err, "new")
	}
	info, err := os.Stat(target)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode = %v, %v, want 0755", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("directory holds %v, %v: a temporary file was left", entries, err)
	}

	// The same content again must not touch the file: a runtime watches the directory.
	if err := run([]string{source + "=" + target}); err != nil {
		t.Fatal(err)
	}
	again, err := os.Stat(target)
	if err != nil || !os.SameFile(info, again) {
		t.Errorf("an unchanged file was replaced (%v)", err)
	}
}

func TestRunWaits(t *testing.T) {
	dir := t.TempDir()
	source, target, sign := filepath.Join(dir, "source"), filepath.Join(dir, "target"), filepath.Join(dir, "sign")
	write(t, source, "content", 0o644)
	done := make(chan error, 1)
	go func() { done <- run([]string{"--after=" + sign, source + "=" + target}) }()
	// Whatever comes first, the target is there when run returns, and run returns because of the sign.
	write(t, sign, "", 0o644)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(target); err != nil {
		t.Error(err)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"no arguments":     nil,
		"no target":        {"/etc/passwd"},
		"a missing source": {filepath.Join(t.TempDir(), "none") + "=/dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(args); err == nil {
				t.Error("no error")
			}
		})
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
