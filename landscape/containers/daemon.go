// Package containers runs a landscape's own containerd, and containers in it.
package containers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"

	"gardener.cloud/gardener/landscape/host"
)

// Namespace is containerd's namespace for everything that belongs to a landscape.
const Namespace = "landscape"

// startTimeout is how long containerd may take until it answers, and until it has restarted a container. It usually takes
// well below a second; more on a busy disk.
const startTimeout = 30 * time.Second

// answerTimeout is how long a containerd that runs may take to answer.
const answerTimeout = 10 * time.Second

var errNotServing = errors.New("it reports that it does not serve")

// Daemon is a containerd with its own root, state and socket.
type Daemon struct {
	// Root holds images and snapshots; State holds sockets and what a reboot empties.
	Root, State string
	// Log is the file that containerd's own output is appended to.
	Log string
	// Binaries are the directories that hold containerd, its shim and runc.
	Binaries []string
}

// Socket is the path of the daemon's socket.
func (d Daemon) Socket() string { return filepath.Join(d.State, "containerd.sock") }

// Connect returns a client of the daemon and a context for it. The daemon must run.
func (d Daemon) Connect(ctx context.Context) (*Client, error) {
	inner, err := containerd.New(d.Socket(), containerd.WithDefaultNamespace(Namespace), containerd.WithTimeout(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd at %s: %w", d.Socket(), err)
	}
	// The socket exists a moment before containerd listens on it, so this waits; it fails for a socket without a listener.
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(ctx, Namespace), answerTimeout)
	defer cancel()
	if serving, err := inner.IsServing(ctx); err != nil || !serving {
		inner.Close() //nolint:errcheck // of no use
		return nil, fmt.Errorf("containerd at %s does not answer: %w", d.Socket(), cmp.Or(err, errNotServing))
	}
	// Commands that start nothing have no binaries.
	runc, err := d.binary("runc")
	if err != nil && len(d.Binaries) > 0 {
		inner.Close() //nolint:errcheck // of no use
		return nil, err
	}
	return &Client{inner: inner, dir: d.State, runc: runcoptions.Options{BinaryName: runc, Root: filepath.Join(d.State, "runc")}}, nil
}

// Start starts the daemon, unless it answers already, and returns a client of it. The daemon goes on when the calling
// process ends.
func (d Daemon) Start(ctx context.Context) (*Client, error) {
	// It takes the whole timeout to notice a socket file without a listener, so look for the process first.
	if len(d.processes()) > 0 {
		if client, err := d.Connect(ctx); err == nil {
			return client, nil
		}
		if err := host.Kill(ctx, d.processes()); err != nil {
			return nil, fmt.Errorf("end a containerd that does not answer: %w", err)
		}
	}
	binary, err := d.binary("containerd")
	if err != nil {
		return nil, err
	}
	if err := host.WriteFile(d.configFile(), []byte(d.config()), 0o644); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(d.Log), 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(d.Socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, "--config", d.configFile())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "PATH="+d.path())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	ctx, exited := context.WithCancelCause(ctx)
	go func() { exited(fmt.Errorf("containerd ended at once: %w", cmd.Wait())) }()
	if err := host.AwaitPath(ctx, d.Socket()); err != nil {
		return nil, fmt.Errorf("%w; see %s", err, d.Log)
	}
	return d.Connect(ctx)
}

// Stop kills the daemon and its shims. Containers must have been removed, or are killed by their control group afterwards.
func (d Daemon) Stop(ctx context.Context) error {
	if err := host.Kill(ctx, d.processes()); err != nil {
		return err // It would restart what ends.
	}
	// Shims have containerd's address as an argument.
	if err := host.Kill(ctx, host.ProcessesWithArgument(d.Socket())); err != nil {
		return err
	}
	return d.removeShimSockets()
}

// removeShimSockets removes the sockets of killed shims, which are not in the daemon's own directories but always in
// /run/containerd/s.
func (d Daemon) removeShimSockets() error {
	files, err := filepath.Glob(filepath.Join(d.stateDir(), "io.containerd.runtime.v2.task", Namespace, "*", "bootstrap.json"))
	if err != nil {
		return err
	}
	const dir = "/run/containerd/s"
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var shim struct{ Address string }
		if err := json.Unmarshal(data, &shim); err != nil {
			continue // written half by a shim that was killed, so it has no socket yet
		}
		if socket := strings.TrimPrefix(shim.Address, "unix://"); filepath.Dir(socket) == dir {
			if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	// Another containerd of the host may use these directories; then they are not empty.
	_, _ = unix.Rmdir(dir), unix.Rmdir(filepath.Dir(dir))
	return nil
}

// processes finds the daemon by its configuration file, which no other containerd uses.
func (d Daemon) processes() []int { return host.ProcessesWithArgument(d.configFile()) }

func (d Daemon) stateDir() string { return filepath.Join(d.State, "state") }

func (d Daemon) configFile() string { return filepath.Join(d.State, "config.toml") }

// config disables the plugins that only Kubernetes needs.
func (d Daemon) config() string {
	return fmt.Sprintf(`version = 3
root = %q
state = %q
disabled_plugins = [
  "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri",
  "io.containerd.podsandbox.controller.v1.podsandbox", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.blockfile",
]

[grpc]
  address = %q

[plugins."io.containerd.internal.v1.restart"]
  interval = "2s"
`, d.Root, d.stateDir(), d.Socket())
}

func (d Daemon) path() string {
	path := os.Getenv("PATH")
	for _, dir := range d.Binaries {
		path = dir + string(os.PathListSeparator) + path
	}
	return path
}

func (d Daemon) binary(name string) (string, error) {
	for _, dir := range d.Binaries {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in %v: build it with: distribution build %s", name, d.Binaries, name)
}
