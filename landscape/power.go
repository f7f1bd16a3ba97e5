package landscape

import (
	"context"
	"errors"
	"fmt"

	"gardener.cloud/gardener/landscape/containers"
	"gardener.cloud/gardener/landscape/host"
	"gardener.cloud/gardener/landscape/progress"
)

// StopMachines takes the power and the network of machines away. Their disks stay, and they stay off until StartMachines or Up.
func (l *Landscape) StopMachines(ctx context.Context, printer *progress.Printer, names ...string) error {
	return l.eachMachine(ctx, printer, "Stopping machine ", names, func(ctx context.Context, client *containers.Client, machine Machine) error {
		return l.powerOff(ctx, client, machine.Name)
	})
}

// StartMachines starts machines that were stopped, and returns when they have booted. Those that run stay as they are.
func (l *Landscape) StartMachines(ctx context.Context, printer *progress.Printer, names ...string) error {
	return l.eachMachine(ctx, printer, "Starting machine ", names, func(ctx context.Context, client *containers.Client, machine Machine) error {
		if err := l.network().EnsureMachine(ctx, machine.Name, machine.Number); err != nil {
			return err
		}
		if err := client.Start(ctx, machine.Name, l.logFile(machine.Name)); err != nil {
			return err
		}
		return awaitBoot(ctx, client, machine.Name)
	})
}

// eachMachine does something with machines, one after the other, if all of them exist.
func (l *Landscape) eachMachine(
	ctx context.Context, printer *progress.Printer, title string, names []string, do func(context.Context, *containers.Client, Machine) error,
) error {
	var machines []Machine
	var errs []error
	for _, name := range names {
		machine, err := l.machine(name)
		machines, errs = append(machines, machine), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := l.Lock(); err != nil {
		return err
	}
	client, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is lost
	for _, machine := range machines {
		if err := printer.Step(ctx, title+machine.Name, l.logFile(machine.Name), func(ctx context.Context, _ func(string)) error {
			ctx, cancel := context.WithTimeoutCause(ctx, bootTimeout, fmt.Errorf("not done after %s", bootTimeout))
			defer cancel()
			return do(ctx, client, machine)
		}); err != nil {
			return err
		}
	}
	return nil
}

// powerOff ends all processes of a machine, and removes its network.
func (l *Landscape) powerOff(ctx context.Context, client *containers.Client, machine string) error {
	if err := client.Stop(ctx, machine); err != nil {
		return err
	}
	cgroup := l.machineCgroup(machine)
	if err := host.Kill(ctx, host.CgroupProcesses(cgroup)); err != nil {
		return err
	}
	return errors.Join(host.RemoveCgroup(cgroup), l.network().RemoveMachine(machine))
}
