package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gardener.cloud/gardener/landscape/containers"
	"gardener.cloud/gardener/landscape/host"
	"gardener.cloud/gardener/landscape/progress"
)

const downTimeout = 2 * time.Minute

// Down removes the landscape and all its data. It finds processes, mounts and networks on the host instead of reading the landscape's
// state, so it also cleans up after a run that was interrupted anywhere, and a second run does nothing.
func (l *Landscape) Down(ctx context.Context, printer *progress.Printer) error {
	if os.Geteuid() != 0 {
		return errors.New("a landscape's containers and networks belong to root: run this as root, for example with sudo")
	}
	if other, running, err := l.owner(); err != nil {
		return err
	} else if running {
		if other.Dir != l.Dir {
			return fmt.Errorf("landscape %q runs from %s: take it down with: %s", l.Name, other.Dir, downCommand(l.Name, other))
		}
		l.state.Index = other.Index
	}
	if err := l.Lock(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, downTimeout, fmt.Errorf("not done after %s", downTimeout))
	defer cancel()
	for _, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Stopping machines and containers", l.stopProcesses},
		{"Removing mounts", func(context.Context) error { return host.UnmountBelow(l.Dir, l.runDir()) }},
		{"Removing the network", func(context.Context) error { return l.removeNetwork() }},
		{"Removing data", func(context.Context) error { return os.RemoveAll(l.Dir) }},
		{"Restoring kernel settings", func(context.Context) error { return l.disown() }},
	} {
		if err := printer.Step(ctx, step.title, "", func(ctx context.Context, _ func(string)) error { return step.do(ctx) }); err != nil {
			return err
		}
	}
	// Leave no empty parent behind, and keep one with other landscapes.
	_ = os.Remove(filepath.Dir(l.Dir))
	return nil
}

func (l *Landscape) removeNetwork() error {
	if l.state.Index < 0 {
		return nil
	}
	// No other landscape may claim the index meanwhile.
	unlock, err := lockHost()
	if err != nil {
		return err
	}
	defer unlock()
	owners, err := readOwners()
	if err != nil {
		return err
	}
	return l.network().Remove(l.hasLink(owners))
}

// hasLink reports whether the interface with the landscape's index is the landscape's own. After a reboot, another one may have the index.
func (l *Landscape) hasLink(owners map[string]owner) bool {
	for name, other := range owners {
		if name != l.Name && other.Index == l.state.Index {
			return false
		}
	}
	return true
}

// stopProcesses stops containerd first, so that nothing is restarted, and then kills what runs in the landscape's control groups.
func (l *Landscape) stopProcesses(ctx context.Context) error {
	if err := l.daemon(nil).Stop(ctx); err != nil {
		return err
	}
	// Processes may have started others since they were listed.
	for pids := host.CgroupProcesses(l.cgroup()); len(pids) > 0; pids = host.CgroupProcesses(l.cgroup()) {
		if err := host.Kill(ctx, pids); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return host.RemoveCgroup(l.cgroup())
}

// removeMachine removes one machine and its data.
func (l *Landscape) removeMachine(ctx context.Context, client *containers.Client, machine string) error {
	if err := l.powerOff(ctx, client, machine); err != nil {
		return err
	}
	if err := client.Remove(ctx, machine); err != nil {
		return err
	}
	return removeMounted(l.machineDir(machine), host.UnmountBelow)
}

// removeMounted deletes a directory once nothing is mounted below it: deleting through a mount would delete what is mounted there.
func removeMounted(dir string, unmountBelow func(dirs ...string) error) error {
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// daemon is the landscape's containerd. Without artifacts it can be stopped and connected to, but not started.
func (l *Landscape) daemon(a *artifacts) containers.Daemon {
	d := containers.Daemon{
		Root: filepath.Join(l.Dir, "containerd"), State: filepath.Join(l.runDir(), "containerd"), Log: l.logFile("containerd"),
	}
	if a != nil {
		for _, product := range []string{"containerd", "runc"} {
			d.Binaries = append(d.Binaries, filepath.Join(a.products[product].Dir, "bin"))
		}
	}
	return d
}
