// Package integration tests what needs root and what the distribution built, but no cluster.
package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gardener.cloud/gardener/internal/distribution"
	"gardener.cloud/gardener/landscape/containers"
	"gardener.cloud/gardener/landscape/host"
)

const userData = `#!/bin/bash
set -e
echo "$(hostname) was here" >> /var/lib/user-data-ran
`

// A machine boots systemd in a container, runs its user data once in its life, has a control group root of its own, and
// leaves nothing behind.
func TestMachineBoots(t *testing.T) {
	artifacts := built(t, "containerd", "runc", "machine")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()

	dir, run := t.TempDir(), shortTempDir(t)
	cgroup := fmt.Sprintf("/gardener-test-%d", os.Getpid())
	index, err := host.FreeIndex(map[int]bool{0: true, 1: true}) // The first ones are for landscapes of developers.
	if err != nil {
		t.Fatal(err)
	}
	network := host.Network{Landscape: fmt.Sprintf("test-%d", os.Getpid()), Index: index}
	daemon := containers.Daemon{
		Root: filepath.Join(dir, "containerd"), State: run, Log: filepath.Join(dir, "containerd.log"),
		Binaries: []string{filepath.Join(artifacts["containerd"].Dir, "bin"), filepath.Join(artifacts["runc"].Dir, "bin")},
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := errors.Join(
			daemon.Stop(ctx), host.Kill(ctx, host.CgroupProcesses(cgroup)), host.RemoveCgroup(cgroup),
			host.UnmountBelow(dir, run), network.Remove(true),
		)
		if err != nil {
			t.Errorf("clean up: %v", err)
		}
		for _, path := range []string{network.NamespacePath(), network.MachineNamespacePath("m1")} {
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s is left behind", path)
			}
		}
		if mounts, err := host.MountsBelow(dir, run); err != nil || len(mounts) > 0 {
			t.Errorf("mounts are left behind: %v, %v", mounts, err)
		}
	})
	// It is repeated whenever a landscape comes up.
	if err := errors.Join(network.Ensure(ctx), network.EnsureMachine(ctx, "m1", 0), network.EnsureMachine(ctx, "m1", 0), network.RoutePool(ctx, 0, 0)); err != nil {
		t.Fatal(err)
	}
	client, err := daemon.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // nothing is pending
	images, err := artifacts["machine"].Images()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Import(ctx, artifacts["machine"].ImagesDir(), map[string]string{images[0].Reference: images[0].Digest}); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteFile(filepath.Join(dir, "userdata", "userdata"), []byte(userData), 0o755); err != nil {
		t.Fatal(err)
	}
	machine := containers.Container{
		Name: "m1", Image: images[0].Reference, Privileged: true, Log: filepath.Join(dir, "m1.log"),
		Network: network.MachineNamespacePath("m1"), Cgroup: cgroup + "/m1",
		Mounts: []specs.Mount{
			{Type: "tmpfs", Source: "tmpfs", Destination: "/run", Options: []string{"mode=755"}},
			{Type: "bind", Source: filepath.Join(dir, "userdata"), Destination: "/etc/machine", Options: []string{"rbind", "ro"}},
		},
	}
	boot := func(t *testing.T) {
		t.Helper()
		if err := client.Ensure(ctx, machine); err != nil {
			t.Fatal(err)
		}
		pid, err := client.PID(ctx, "m1")
		if err != nil || pid == 0 {
			t.Fatalf("process id = %d, %v", pid, err)
		}
		if err := host.AwaitPath(ctx, fmt.Sprintf("/proc/%d/root/run/systemd/private", pid)); err != nil {
			t.Fatal(err)
		}
		state, err := client.Run(ctx, "m1", nil, "systemctl", "is-system-running", "--wait")
		if err != nil || strings.TrimSpace(state) != "running" {
			failed, _ := client.Run(ctx, "m1", nil, "systemctl", "list-units", "--failed", "--plain")
			t.Fatalf("systemd is %q, %v\n%s", state, err, failed)
		}
	}
	boot(t)

	for name, tc := range map[string]struct {
		command []string
		want    string
	}{
		"the host name is the container's name": {[]string{"hostname"}, "m1"},
		"containerd answers":                    {[]string{"sh", "-c", "ctr version >/dev/null && echo yes"}, "yes"},
		"user data has run":                     {[]string{"cat", "/var/lib/user-data-ran"}, "m1 was here"},
		"its own control group root: the first process is in a group right below it": {
			// As a unit of systemd: a command of the test runs outside of it.
			[]string{"systemd-run", "--quiet", "--wait", "--pipe", "sh", "-c", "grep -c gardener-test /proc/1/cgroup || true"}, "0",
		},
		"its address is the network's": {[]string{"sh", "-c", "ip -4 -o address show eth0 | awk '{print $4}'"}, network.Machine(0).String() + "/24"},
		"it reaches its gateway":       {[]string{"sh", "-c", "ping -c1 -W5 " + network.Gateway().String() + " >/dev/null && echo yes"}, "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := client.Run(ctx, "m1", nil, tc.command...)
			if err != nil || strings.TrimSpace(got) != tc.want {
				t.Errorf("%v = %q, %v, want %q", tc.command, got, err, tc.want)
			}
		})
	}

	t.Run("connections to a free address of load balancers fail at once", func(t *testing.T) {
		dialer := net.Dialer{Timeout: time.Minute}
		if _, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(network.Pool(0).Addr().String(), "80")); !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("connect: %v", err)
		}
	})

	t.Run("user data does not run again after a reboot", func(t *testing.T) {
		pid, err := client.PID(ctx, "m1")
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Kill(ctx, []int{pid}); err != nil {
			t.Fatal(err)
		}
		boot(t)
		got, err := client.Run(ctx, "m1", nil, "cat", "/var/lib/user-data-ran")
		if err != nil || strings.Count(got, "was here") != 1 {
			t.Errorf("user data wrote %q, %v", got, err)
		}
	})

	t.Run("an exit code comes back", func(t *testing.T) {
		_, err := client.Run(ctx, "m1", strings.NewReader("input\n"), "sh", "-c", "cat >&2; exit 7")
		var exit *containers.ExitError
		if !errors.As(err, &exit) || exit.Code != 7 || exit.Output != "input" {
			t.Errorf("error = %v, want exit code 7 and the output", err)
		}
	})
}

// built returns the artifacts in the cache of the distribution. Without root or with one missing, the test is skipped; in CI it fails.
func built(t *testing.T, products ...string) map[string]*distribution.Artifact {
	t.Helper()
	giveUp := t.Skipf
	if os.Getenv("CI") != "" {
		giveUp = t.Fatalf
	}
	if os.Geteuid() != 0 {
		giveUp("this test starts containers, which needs root")
	}
	root, err := distribution.FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := distribution.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	d, err := distribution.Open(root, cache)
	if err != nil {
		t.Fatal(err)
	}
	artifacts := map[string]*distribution.Artifact{}
	for _, product := range products {
		if artifacts[product], err = d.Artifact(product); err != nil {
			giveUp("%v", err)
		}
	}
	return artifacts
}

// shortTempDir is a temporary directory whose path leaves room for a socket's name.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // what is left is in a temporary directory
	return dir
}
