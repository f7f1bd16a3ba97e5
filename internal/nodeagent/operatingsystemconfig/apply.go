package operatingsystemconfig

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// applied is the result of a pass.
type applied struct {
	// self is set if the agent's own unit or files changed since it started, so that it has to restart.
	self bool
	// unready are the registries whose mirrors do not answer yet.
	unready []string
}

// applying is what a pass is about.
type applying struct {
	osc    *extensionsv1alpha1.OperatingSystemConfig
	before *extensionsv1alpha1.OperatingSystemConfig // nil on a new machine
	// raw is the configuration as it is in the Secret, which is what is kept on the machine.
	raw []byte
	// changes are those for which the Node was drained, and node is the Node, nil on a new machine.
	changes changes
	node    *corev1.Node
}

// pass applies a configuration to the machine once.
type pass struct {
	*reconciler
	applying
	tried []*extensionsv1alpha1.OperatingSystemConfig // what passes before this one did not finish, the newest first

	units, unitsBefore, unitsTried []extensionsv1alpha1.Unit
	files, filesBefore, filesTried []extensionsv1alpha1.File

	edits   edits           // of files, by units that were started
	started []string        // units that this pass has started
	restart map[string]bool // units that are to be restarted
	pending bool            // pendingFile exists and names all of them
	reload  bool            // files changed that systemd reads
	unready []string
}

// apply makes the machine match the configuration. It starts from the current state of the machine, so that a pass that failed half way
// is repeated by the next one. Only which units are still to be restarted cannot be observed, so that is saved in a file.
func (r *reconciler) apply(ctx context.Context, a applying) (applied, error) {
	p := &pass{reconciler: r, applying: a, restart: map[string]bool{}}
	p.units, p.files = merge(a.osc, r.Hostname)
	if a.before != nil {
		p.unitsBefore, p.filesBefore = merge(a.before, r.Hostname)
	}
	if err := errors.Join(p.readTried(), p.readPending(), p.readEdits()); err != nil {
		return applied{}, err
	}
	// In this order: units of a configuration that was tried are not marked again.
	if err := p.markUnits(); err != nil {
		return applied{}, err
	}
	if err := p.try(a.raw); err != nil {
		return applied{}, err
	}
	// Each does as much as it can, whatever became of the others.
	if err := errors.Join(p.configureContainerd(ctx), p.writeFiles(ctx), p.writeUnits(ctx)); err != nil {
		return applied{}, err
	}
	if err := p.removeObsolete(ctx); err != nil {
		return applied{}, err
	}
	if p.reload {
		if err := r.Systemd.Reload(ctx); err != nil {
			return applied{}, err
		}
	}
	if err := r.PrepareKubelet(); err != nil {
		return applied{}, err
	}
	if err := p.updateInPlace(ctx); err != nil {
		return applied{}, err
	}
	if err := errors.Join(p.startUnits(ctx), p.recordEdits()); err != nil {
		return applied{}, err
	}
	if err := r.Root.Remove(pendingFile); err != nil {
		return applied{}, err
	}
	if _, err := r.Root.Update(nodeagentconfigv1alpha1.LastAppliedOperatingSystemConfigFilePath, a.raw, 0o600); err != nil {
		return applied{}, err
	}
	return applied{self: r.outdated, unready: p.unready}, r.Root.Remove(tryingFile)
}
