package operatingsystemconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/systemd"
)

// markUnits marks the units that are to be started, stopped, enabled or disabled, whatever their files. It compares with the configuration
// that was tried last: for that one, it has been done or is saved in pendingFile. This process runs from its unit, which is therefore not
// started.
func (p *pass) markUnits() error {
	var names []string
	for _, unit := range p.units {
		last := find(p.unitsTried, unit.Name)
		if last == nil {
			last = find(p.unitsBefore, unit.Name)
		}
		if differs(last, unit) && unit.Name != nodeagentconfigv1alpha1.UnitName {
			names = append(names, unit.Name)
		}
	}
	return p.mark(names...)
}

// writeUnits writes unit files and drop-ins, and removes those that units have no longer.
func (p *pass) writeUnits(ctx context.Context) error {
	for _, unit := range p.units {
		for _, file := range unitFiles(unit) {
			data, err := content(file)
			if err != nil {
				return err
			}
			same, err := p.Root.Same(file.Path, data, mode(file))
			if err != nil {
				return err
			}
			p.reload = p.reload || !same
			if err := p.write(ctx, file.Path, data, mode(file), unit.Name); err != nil {
				return err
			}
		}
		for _, was := range slices.Concat(p.unitsBefore, p.unitsTried) {
			if was.Name != unit.Name {
				continue
			}
			for _, path := range obsolete(unitFiles(was), unitFiles(unit)) {
				if err := p.removeUnitFile(ctx, unit.Name, path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeUnitFile removes a file of a unit that stays, after the unit is marked.
func (p *pass) removeUnitFile(ctx context.Context, unit, path string) error {
	logf.FromContext(ctx).Info("Removing file of unit", "unit", unit, "path", path)
	p.reload = true
	if err := p.mark(unit); err != nil {
		return err
	}
	if err := p.Root.Remove(path); err != nil {
		return err
	}
	return p.Root.RemoveEmptyDir(dropInDir(unit))
}

// startUnits restarts, starts or stops the marked units, containerd first and the others in the order of the configuration. Units that the
// operating system masked are skipped. The result is saved after each unit, so that a crash does not restart it again.
func (p *pass) startUnits(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(p.restart))
	position := func(name string) int {
		if name == extensionsv1alpha1.OperatingSystemConfigUnitNameContainerDService {
			return -1
		}
		return slices.IndexFunc(p.units, func(u extensionsv1alpha1.Unit) bool { return u.Name == name })
	}
	slices.SortStableFunc(names, func(a, b string) int { return position(a) - position(b) })
	var errs []error // a unit that does not start does not keep others from it
	for _, name := range names {
		if err := ignoreMasked(p.start(ctx, name, find(p.units, name))); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(p.restart, name)
		p.started = append(p.started, name)
		errs = append(errs, p.savePending())
	}
	return errors.Join(errs...)
}

// start does what the configuration says about a unit; nil stands for a unit that is not in it, and is restarted if the machine has it.
func (p *pass) start(ctx context.Context, name string, unit *extensionsv1alpha1.Unit) error {
	log := logf.FromContext(ctx)
	if unit == nil {
		state, err := p.Systemd.State(ctx, name)
		if err != nil {
			return err
		}
		if state.Load == systemd.LoadNotFound {
			return nil // a configuration named it by mistake; no restart will ever succeed
		}
		unit = &extensionsv1alpha1.Unit{Name: name, Command: new(extensionsv1alpha1.CommandRestart)}
	} else if before := find(p.unitsBefore, name); before == nil || differs(before, *unit) || unit.Content != nil {
		switch {
		case !ptr.Deref(unit.Enable, true):
			if err := p.Systemd.Disable(ctx, name); err != nil {
				return fmt.Errorf("disable unit %s: %w", name, err)
			}
		case unit.Content != nil || unit.Enable != nil:
			state, err := p.Systemd.State(ctx, name)
			if err != nil {
				return err
			}
			if state.Load == systemd.LoadMasked {
				return fmt.Errorf("%w: %s", systemd.ErrMasked, name)
			}
			if err := p.Systemd.Enable(ctx, name); err != nil {
				return fmt.Errorf("enable unit %s: %w", name, err)
			}
		}
	}
	if ptr.Deref(unit.Command, extensionsv1alpha1.CommandRestart) == extensionsv1alpha1.CommandStop {
		log.Info("Stopping unit", "unit", name)
		return p.Systemd.Stop(ctx, name)
	}
	log.Info("Restarting unit", "unit", name)
	if err := p.Systemd.Restart(ctx, name); err != nil {
		return fmt.Errorf("restart unit %s: %w", name, err)
	}
	return nil
}

func ignoreMasked(err error) error {
	if errors.Is(err, systemd.ErrMasked) {
		return nil
	}
	return err
}
