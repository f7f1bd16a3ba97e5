package operatingsystemconfig

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// removeObsolete stops units and removes files that were applied before and are not in the configuration any more.
func (p *pass) removeObsolete(ctx context.Context) error {
	for _, unit := range slices.Concat(p.unitsBefore, p.unitsTried) {
		if find(p.units, unit.Name) != nil {
			continue
		}
		if err := p.removeUnit(ctx, unit); err != nil {
			return err
		}
	}
	for _, path := range obsolete(slices.Concat(p.filesBefore, p.filesTried), p.files) {
		if !p.Root.Exists(path) {
			continue
		}
		if err := p.removeFile(ctx, path); err != nil {
			return err
		}
	}
	for _, file := range obsolete(registryFiles(append(p.tried, p.before)...), registryFiles(p.osc)) {
		logf.FromContext(ctx).Info("Removing file", "path", file)
		if err := p.Root.Remove(file); err != nil {
			return err
		}
		if err := p.Root.RemoveEmptyDir(path.Dir(file)); err != nil {
			return err
		}
	}
	return nil
}

// removeUnit stops and removes a unit. A unit that the operating system brings only loses its drop-ins, and is restarted without them.
func (p *pass) removeUnit(ctx context.Context, unit extensionsv1alpha1.Unit) error {
	files := unitFiles(unit)
	if unit.Content != nil {
		logf.FromContext(ctx).Info("Removing unit", "unit", unit.Name)
		if err := errors.Join(ignoreMasked(p.Systemd.Stop(ctx, unit.Name)), p.Systemd.Disable(ctx, unit.Name)); err != nil {
			return fmt.Errorf("remove unit %s: %w", unit.Name, err)
		}
		delete(p.restart, unit.Name)
	} else if len(files) > 0 {
		if err := p.mark(unit.Name); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := p.Root.Remove(file.Path); err != nil {
			return err
		}
		p.reload = true
	}
	return p.Root.RemoveEmptyDir(dropInDir(unit.Name))
}

// removeFile removes a file, after the units that used it and stay are marked.
func (p *pass) removeFile(ctx context.Context, path string) error {
	var users []string
	for _, name := range usersOf(path, slices.Concat(p.unitsBefore, p.unitsTried)) {
		if find(p.units, name) != nil {
			users = append(users, name)
		}
	}
	logf.FromContext(ctx).Info("Removing file", "path", path)
	if err := p.markFiles(users, path); err != nil {
		return err
	}
	return p.Root.Remove(path)
}
