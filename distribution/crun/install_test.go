package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// containerd is a fake whose process starts at a time.
type containerd struct {
	started  time.Time
	restarts int
	fails    error
}

func (c *containerd) Started(context.Context) (time.Time, error) { return c.started, nil }

func (c *containerd) Restart(context.Context) error {
	c.restarts++
	if c.fails == nil {
		c.started = time.Now().Add(time.Second) // later than what is written before, whatever the clock's resolution
	}
	return c.fails
}

func newInstallation(t *testing.T, c *containerd) installation {
	t.Helper()
	i := installation{source: t.TempDir(), root: t.TempDir(), directory: "/var/bin/containerruntimes", containerd: c}
	write(t, filepath.Join(i.source, "crun"), "binary")
	write(t, filepath.Join(i.source, "lib", "libyajl.so.2"), "library")
	return i
}

func TestInstallation(t *testing.T) {
	c := &containerd{started: time.Unix(1, 0)}
	i := newInstallation(t, c)
	write(t, i.path(mainConfig), "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n")
	if err := i.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/var/bin/containerruntimes/crun.d/crun":             "binary",
		"/var/bin/containerruntimes/crun.d/lib/libyajl.so.2": "library",
		"/var/bin/containerruntimes/crun": "#!/bin/sh\n" +
			"exec /var/bin/containerruntimes/crun.d/lib/ld.so --library-path /var/bin/containerruntimes/crun.d/lib /var/bin/containerruntimes/crun.d/crun \"$@\"\n",
		"/etc/containerd/conf.d/50-crun.toml": `# Written by install-crun.
version = 3

[plugins]
[plugins."io.containerd.cri.v1.runtime"]
[plugins."io.containerd.cri.v1.runtime".containerd]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.crun]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.crun.options]
BinaryName = "/var/bin/containerruntimes/crun"
SystemdCgroup = true
`,
	} {
		content, err := os.ReadFile(i.path(path))
		if diff := cmp.Diff(want, string(content)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", path, err, diff)
		}
	}
	for _, path := range []string{"crun", "crun.d/crun"} {
		if info, err := os.Stat(i.path("/var/bin/containerruntimes/" + path)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	left, err := filepath.Glob(i.path("/etc/containerd/conf.d/.install-crun-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v %v", left, err)
	}

	if err := i.run(t.Context()); err != nil || c.restarts != 1 {
		t.Errorf("containerd was restarted %d times, want 1: a second run changes nothing (%v)", c.restarts, err)
	}
	write(t, filepath.Join(i.source, "crun"), "newer")
	if err := i.run(t.Context()); err != nil || c.restarts != 1 {
		t.Errorf("containerd was restarted %d times, want 1: it starts the newer binary without (%v)", c.restarts, err)
	}
	if content, err := os.ReadFile(i.path("/var/bin/containerruntimes/crun.d/crun")); string(content) != "newer" {
		t.Errorf("binary %q, %v", content, err)
	}
}

// What a run could not restart is restarted by the next one, although the files are as they should be.
func TestRestartIsRepeated(t *testing.T) {
	c := &containerd{started: time.Unix(1, 0), fails: errors.New("no answer")}
	i := newInstallation(t, c)
	if err := i.run(t.Context()); !errors.Is(err, c.fails) {
		t.Fatalf("error %v", err)
	}
	c.fails = nil
	if err := i.run(t.Context()); err != nil || c.restarts != 2 {
		t.Errorf("%d restarts, want 2 (%v)", c.restarts, err)
	}
}

func TestSystemdCgroup(t *testing.T) {
	const options = "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = "
	for name, tc := range map[string]struct {
		files map[string]string
		want  bool
		fails bool
	}{
		"no configuration":    {},
		"not set":             {files: map[string]string{mainConfig: "version = 3\n"}},
		"set":                 {files: map[string]string{mainConfig: options + "true\n"}, want: true},
		"a drop-in wins":      {files: map[string]string{mainConfig: options + "true\n", "/etc/containerd/conf.d/10-a.toml": options + "false\n"}},
		"the last drop-in":    {files: map[string]string{"/etc/containerd/conf.d/10-a.toml": options + "false\n", "/etc/containerd/conf.d/20-b.toml": options + "true\n"}, want: true},
		"a drop-in without":   {files: map[string]string{mainConfig: options + "true\n", "/etc/containerd/conf.d/10-a.toml": "version = 3\n"}, want: true},
		"not a configuration": {files: map[string]string{mainConfig: "="}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := installation{root: t.TempDir()}
			for path, content := range tc.files {
				write(t, i.path(path), content)
			}
			got, err := i.systemdCgroup()
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("systemdCgroup() = %v, %v", got, err)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"no command":         nil,
		"an unknown command": {"remove"},
		"an unknown flag":    {"install", "--force"},
		"a missing source":   {"install", "--source=" + filepath.Join(t.TempDir(), "none"), "--root=" + t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), args); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"wait"}); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
