package operatingsystemconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
	"gardener.cloud/gardener/internal/nodeagent/systemd"
)

const (
	// pendingFile names the units that are still to be restarted, if the agent ends between writing their files and restarting them. Also
	// if it names none, systemd is still to read the files of units.
	pendingFile = nodeagentconfigv1alpha1.BaseDir + "/pending-units.json"
	// tryingFile has the configurations that were begun since one was applied, as YAML documents. If they fail and another one comes,
	// what they left is removed.
	tryingFile = nodeagentconfigv1alpha1.BaseDir + "/trying-osc.yaml"
	// imageFilesFile tells which files came from which images.
	imageFilesFile = nodeagentconfigv1alpha1.BaseDir + "/image-files.json"
	// imageTimeout is how long an image may take to come.
	imageTimeout = 10 * time.Minute
)

// applied is what a pass has done.
type applied struct {
	// self says that the agent's own unit or files changed since it started, so that it has to start anew.
	self bool
	// unready are the registries whose mirrors do not answer yet.
	unready []string
}

// pass is one application of a configuration to the machine.
type pass struct {
	*Reconciler
	osc    *extensionsv1alpha1.OperatingSystemConfig
	before *extensionsv1alpha1.OperatingSystemConfig   // nil on a new machine
	tried  []*extensionsv1alpha1.OperatingSystemConfig // what passes before this one did not finish, the newest first

	units, unitsBefore, unitsTried []extensionsv1alpha1.Unit
	files, filesBefore, filesTried []extensionsv1alpha1.File

	restart map[string]bool // units that are to be restarted
	pending bool            // there is the file that remembers them
	reload  bool            // unit files changed
	unready []string
}

// apply makes the machine what the configuration says. It starts from what the machine is, so that a pass that failed half way is simply
// done again; only which units are still to be restarted cannot be seen, and is remembered in a file.
//
// The configuration is given as it is in the Secret too: that is what is kept.
func (r *Reconciler) apply(ctx context.Context, osc, before *extensionsv1alpha1.OperatingSystemConfig, raw []byte) (applied, error) {
	p := &pass{Reconciler: r, osc: osc, before: before, restart: map[string]bool{}}
	p.units, p.files = merge(osc, r.Hostname)
	if before != nil {
		p.unitsBefore, p.filesBefore = merge(before, r.Hostname)
	}
	if err := errors.Join(p.readTried(), p.readPending()); err != nil {
		return applied{}, err
	}
	if err := errors.Join(p.markUnits(), p.try(raw)); err != nil {
		return applied{}, err
	}
	err := errors.Join(p.configureContainerd(ctx), p.writeFiles(ctx), p.writeUnits(ctx))
	if err == nil {
		err = p.removeObsolete(ctx)
	}
	if err == nil && p.reload {
		err = r.Systemd.Reload(ctx)
	}
	if err != nil {
		return applied{}, err
	}
	if err := r.PrepareKubelet(); err != nil {
		return applied{}, err
	}
	if err := p.startUnits(ctx); err != nil {
		return applied{}, err
	}
	if err := r.Root.Remove(pendingFile); err != nil {
		return applied{}, err
	}
	if _, err := r.Root.Update(nodeagentconfigv1alpha1.LastAppliedOperatingSystemConfigFilePath, raw, 0o600); err != nil {
		return applied{}, err
	}
	return applied{self: r.outdated, unready: p.unready}, r.Root.Remove(tryingFile)
}

// between is what stands between two YAML documents. No line of a document is like that.
const between = "\n---\n"

// begun returns the configurations that were begun since one was applied, the newest first.
func (r *Reconciler) begun() ([]string, error) {
	data, err := r.Root.Read(tryingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Split(string(data), between), err
}

// document is a configuration as it is kept beside others: that of a Secret ends in a line break, which is not part of what it says.
func document(raw []byte) string { return strings.TrimSpace(string(raw)) }

// readTried finds out what passes before this one did not finish.
func (p *pass) readTried() error {
	begun, err := p.begun()
	if err != nil {
		return err
	}
	for _, document := range begun {
		osc := &extensionsv1alpha1.OperatingSystemConfig{}
		if err := yaml.Unmarshal([]byte(document), osc); err != nil {
			return fmt.Errorf("read what was tried last: %w", err)
		}
		units, files := merge(osc, p.Hostname)
		p.tried, p.unitsTried, p.filesTried = append(p.tried, osc), append(p.unitsTried, units...), append(p.filesTried, files...)
	}
	return nil
}

// try remembers that this configuration is being applied, if it is not what was applied last.
func (p *pass) try(raw []byte) error {
	if same, err := p.Root.Same(nodeagentconfigv1alpha1.LastAppliedOperatingSystemConfigFilePath, raw, 0o600); same || err != nil {
		return err
	}
	begun, err := p.begun()
	if err != nil {
		return err
	}
	this := document(raw)
	begun = slices.DeleteFunc(begun, func(other string) bool { return other == this })
	_, err = p.Root.Update(tryingFile, []byte(strings.Join(append([]string{this}, begun...), between)), 0o600)
	return err
}

func (p *pass) readPending() error {
	data, err := p.Root.Read(pendingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(data, &names)
	}
	for _, name := range names {
		p.restart[name] = true
	}
	p.pending, p.reload = true, true // the pass before may not have come so far
	return err
}

// mark remembers that units are to be restarted, before their files change. That the agent is, only this process has to know: another one
// has started after the change. But systemd may not have read the agent's new unit then.
func (p *pass) mark(units ...string) error {
	if len(units) == 0 {
		return nil
	}
	known := len(p.restart)
	for _, unit := range units {
		if unit == nodeagentconfigv1alpha1.UnitName {
			p.outdated = true
			continue
		}
		p.restart[unit] = true
	}
	if p.pending && len(p.restart) == known {
		return nil
	}
	p.pending = true
	return p.savePending()
}

func (p *pass) savePending() error {
	data, err := json.Marshal(slices.Sorted(maps.Keys(p.restart)))
	if err != nil {
		return err
	}
	return p.Root.Write(pendingFile, data, 0o600)
}

// usersOf are those of some units that are restarted when a file changes.
func usersOf(file string, units []extensionsv1alpha1.Unit) []string {
	var names []string
	for _, unit := range units {
		if slices.Contains(unit.FilePaths, file) {
			names = append(names, unit.Name)
		}
	}
	return names
}

// markUnits remembers the units that are to be started, stopped, enabled or disabled, whatever their files. It goes by what was tried
// last: that has been done, or is remembered. This process runs from its unit, so there is no need to start it.
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

func (p *pass) configureContainerd(ctx context.Context) error {
	if !hasContainerd(p.osc) {
		return nil
	}
	config, err := containerdFiles(p.Root, p.osc.Spec.CRIConfig)
	if err != nil {
		return err
	}
	same, err := p.Root.Same(containerdConfig, config, 0o644)
	if err != nil {
		return err
	}
	if !same {
		logf.FromContext(ctx).Info("Configuring containerd")
		err := p.mark(extensionsv1alpha1.OperatingSystemConfigUnitNameContainerDService)
		if err := errors.Join(err, p.Root.Write(containerdConfig, config, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// configureRegistries tells containerd about registries. Mirrors that are to be probed are, once: before their file is there.
func (p *pass) configureRegistries(ctx context.Context) error {
	// containerd reads these whenever it pulls.
	for _, registry := range registries(p.osc) {
		file := hostsPath(registry.Upstream)
		if ptr.Deref(registry.ReadinessProbe, false) && !p.Root.Exists(file) {
			if err := p.probe(ctx, registry); err != nil {
				logf.FromContext(ctx).V(1).Info("A mirror does not answer yet", "registry", registry.Upstream, "reason", err.Error())
				p.unready = append(p.unready, registry.Upstream)
				continue
			}
		}
		if _, err := p.Root.Update(file, hosts(registry), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// probe tells why a mirror of a registry is not ready.
func (p *pass) probe(ctx context.Context, registry extensionsv1alpha1.RegistryConfig) error {
	for _, host := range registry.Hosts {
		if err := p.Probe(ctx, p.Root, registry.Upstream, host); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles writes the files that are not as they should be. Of those in images, that is told by what was applied before. Registries come
// in between: their authorities are files, and images come from them. The agent's own binary comes last, and its configuration right after
// it, whatever else failed: each may be of another version, say what only the binary of that version understands, and a kill may come at
// any time.
func (p *pass) writeFiles(ctx context.Context) error {
	images := map[string][]imagefile.File{}
	origins, err := p.readOrigins()
	if err != nil {
		return err
	}
	known := len(origins)
	maps.DeleteFunc(origins, func(path, _ string) bool {
		return !slices.ContainsFunc(p.files, func(f extensionsv1alpha1.File) bool { return f.Path == path && f.Content.ImageRef != nil })
	})
	if len(origins) < known {
		if err := p.saveOrigins(origins); err != nil {
			return err
		}
	}
	var errs []error
	var agentConfig *extensionsv1alpha1.File
	agentImage := "" // if the binary is to come from it
	for _, file := range p.files {
		if file.Path == operatingsystemconfig.NodeAgentConfigFile {
			agentConfig = &file
			continue
		}
		if ref := file.Content.ImageRef; ref != nil {
			if origins[file.Path] != origin(ref.Image, ref.FilePathInImage, mode(file)) || !p.Root.Exists(file.Path) {
				images[ref.Image] = append(images[ref.Image], imagefile.File{InImage: ref.FilePathInImage, Path: file.Path, Mode: mode(file)})
				if file.Path == nodeagentconfigv1alpha1.PathBinary {
					agentImage = ref.Image
				}
			}
			continue
		}
		errs = append(errs, p.writeInline(ctx, file))
	}
	errs = append(errs, p.configureRegistries(ctx))
	names := slices.Sorted(maps.Keys(images))
	if agentImage != "" {
		names = append(slices.DeleteFunc(names, func(image string) bool { return image == agentImage }), agentImage)
	}
	for _, image := range names {
		var users []string
		for _, file := range images[image] {
			users = append(users, usersOf(file.Path, p.units)...)
		}
		logf.FromContext(ctx).Info("Getting files out of an image", "image", image, "files", len(images[image]))
		if err := p.mark(users...); err != nil {
			return err
		}
		err := p.extract(ctx, image, images[image], origins)
		if err != nil && image == agentImage {
			agentConfig = nil // the binary for it is not there
		}
		errs = append(errs, err)
	}
	if agentConfig != nil {
		errs = append(errs, p.writeInline(ctx, *agentConfig))
	}
	return errors.Join(errs...)
}

// writeInline writes a file whose content the configuration has.
func (p *pass) writeInline(ctx context.Context, file extensionsv1alpha1.File) error {
	data, err := content(file)
	if err != nil {
		return err
	}
	return p.write(ctx, file.Path, data, mode(file), usersOf(file.Path, p.units)...)
}

// extract writes files of an image, and remembers where they came from.
func (p *pass) extract(ctx context.Context, image string, files []imagefile.File, origins map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	if err := p.Extract(ctx, p.Root, image, files); err != nil {
		return err
	}
	for _, file := range files {
		origins[file.Path] = origin(image, file.InImage, file.Mode)
	}
	return p.saveOrigins(origins)
}

func (p *pass) saveOrigins(origins map[string]string) error {
	data, err := json.Marshal(origins)
	if err != nil {
		return err
	}
	return p.Root.Write(imageFilesFile, data, 0o600)
}

// origin says where a file came from.
func origin(image, path string, mode fs.FileMode) string {
	return fmt.Sprintf("%s %s %s", image, path, mode.Perm())
}

// readOrigins returns which files came from where, by their paths. That of the agent itself came with the machine.
func (p *pass) readOrigins() (map[string]string, error) {
	origins := map[string]string{}
	data, err := p.Root.Read(imageFilesFile)
	if err == nil {
		return origins, json.Unmarshal(data, &origins)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	image, err := p.Root.Read(operatingsystemconfig.InstalledImageFile)
	if errors.Is(err, fs.ErrNotExist) {
		return origins, nil
	}
	origins[nodeagentconfigv1alpha1.PathBinary] = origin(strings.TrimSpace(string(image)), operatingsystemconfig.NodeAgentPathInImage, 0o755)
	return origins, err
}

// write writes a file that is not as it should be, and remembers the units that are to be restarted for it.
func (p *pass) write(ctx context.Context, path string, data []byte, mode fs.FileMode, users ...string) error {
	same, err := p.Root.Same(path, data, mode)
	if same || err != nil {
		return err
	}
	logf.FromContext(ctx).Info("Writing file", "path", path)
	if err := p.mark(users...); err != nil {
		return err
	}
	return p.Root.Write(path, data, mode)
}

// writeUnits writes unit files and drop-ins, and enables and disables units.
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
			for _, gone := range obsolete(unitFiles(was), unitFiles(unit)) {
				logf.FromContext(ctx).Info("Removing part of a unit", "path", gone)
				p.reload = true
				if err := errors.Join(p.mark(unit.Name), p.Root.Remove(gone), p.Root.RemoveEmptyDir(unitDir+"/"+unit.Name+dropInSuffix)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeObsolete stops units and removes files that were applied before and are wanted no more.
func (p *pass) removeObsolete(ctx context.Context) error {
	log := logf.FromContext(ctx)
	for _, unit := range slices.Concat(p.unitsBefore, p.unitsTried) {
		if find(p.units, unit.Name) != nil {
			continue
		}
		parts := unitFiles(unit)
		if unit.Content != nil {
			log.Info("Removing unit", "unit", unit.Name)
			if err := errors.Join(ignoreMasked(p.Systemd.Stop(ctx, unit.Name)), p.Systemd.Disable(ctx, unit.Name)); err != nil {
				return fmt.Errorf("remove unit %s: %w", unit.Name, err)
			}
			delete(p.restart, unit.Name)
		} else if len(parts) > 0 {
			// The operating system's own unit goes on without what was added to it.
			if err := p.mark(unit.Name); err != nil {
				return err
			}
		}
		for _, part := range parts {
			if err := p.Root.Remove(part.Path); err != nil {
				return err
			}
			p.reload = true
		}
		if err := p.Root.RemoveEmptyDir(unitDir + "/" + unit.Name + dropInSuffix); err != nil {
			return err
		}
	}
	for _, gone := range obsolete(slices.Concat(p.filesBefore, p.filesTried), p.files) {
		log.Info("Removing file", "path", gone)
		if !p.Root.Exists(gone) {
			continue
		}
		var users []string
		for _, name := range usersOf(gone, slices.Concat(p.unitsBefore, p.unitsTried)) {
			if find(p.units, name) != nil {
				users = append(users, name)
			}
		}
		if err := errors.Join(p.mark(users...), p.Root.Remove(gone)); err != nil {
			return err
		}
	}
	for _, gone := range obsolete(registryFiles(append(p.tried, p.before)...), registryFiles(p.osc)) {
		log.Info("Removing file", "path", gone)
		if err := errors.Join(p.Root.Remove(gone), p.Root.RemoveEmptyDir(path.Dir(gone))); err != nil {
			return err
		}
	}
	return nil
}

func hasContainerd(osc *extensionsv1alpha1.OperatingSystemConfig) bool {
	return osc != nil && osc.Spec.CRIConfig != nil && osc.Spec.CRIConfig.Name == extensionsv1alpha1.CRINameContainerD
}

// registries are those that a configuration tells containerd about.
func registries(osc *extensionsv1alpha1.OperatingSystemConfig) []extensionsv1alpha1.RegistryConfig {
	if !hasContainerd(osc) || osc.Spec.CRIConfig.Containerd == nil {
		return nil
	}
	return osc.Spec.CRIConfig.Containerd.Registries
}

func registryFiles(configurations ...*extensionsv1alpha1.OperatingSystemConfig) []extensionsv1alpha1.File {
	var files []extensionsv1alpha1.File
	for _, osc := range configurations {
		for _, registry := range registries(osc) {
			files = append(files, extensionsv1alpha1.File{Path: hostsPath(registry.Upstream)})
		}
	}
	return files
}

// startUnits restarts, starts or stops what changed, in the order of the configuration, and containerd before everything. Units that the
// operating system masked are left alone. What is done is remembered at once, so that a crash does not restart it again.
func (p *pass) startUnits(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(p.restart))
	order := func(name string) int {
		if name == extensionsv1alpha1.OperatingSystemConfigUnitNameContainerDService {
			return -1
		}
		return slices.IndexFunc(p.units, func(u extensionsv1alpha1.Unit) bool { return u.Name == name })
	}
	slices.SortStableFunc(names, func(a, b string) int { return order(a) - order(b) })
	var errs []error
	for _, name := range names {
		if err := ignoreMasked(p.start(ctx, name, find(p.units, name))); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(p.restart, name)
		errs = append(errs, p.savePending())
	}
	return errors.Join(errs...)
}

func (p *pass) start(ctx context.Context, name string, unit *extensionsv1alpha1.Unit) error {
	log := logf.FromContext(ctx)
	if unit == nil {
		unit = &extensionsv1alpha1.Unit{Name: name, Command: ptr.To(extensionsv1alpha1.CommandRestart)}
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
			if state.Load == "masked" {
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
