package landscape

import (
	"context"
	"fmt"
	"os"
	"slices"

	"gardener.cloud/gardener/landscape/containers"
)

// Connect returns a client for commands on the given machine.
func (l *Landscape) Connect(ctx context.Context, machine string) (*containers.Client, error) {
	if _, err := l.machine(machine); err != nil {
		return nil, err
	}
	return l.connect(ctx)
}

// connect returns a client of the landscape's containerd.
func (l *Landscape) connect(ctx context.Context) (*containers.Client, error) {
	client, err := l.daemon(nil).Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; start it with: %s", err, makeCommand("up", l.Name))
	}
	return client, nil
}

// ServiceLog returns the log file of a process that serves machines, and whether there is a process of that name.
func (l *Landscape) ServiceLog(name string) (string, bool) {
	if !slices.Contains([]string{registryContainer, pushContainer, resolverContainer, "containerd"}, name) {
		return "", false
	}
	_, err := os.Stat(l.logFile(name))
	return l.logFile(name), err == nil
}
