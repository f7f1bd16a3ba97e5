package operatingsystemconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// pendingFile names the units that are still to be restarted, in case the agent ends between writing their files and restarting them.
	// Even if it names none, systemd still has to read the unit files.
	pendingFile = nodeagentconfigv1alpha1.BaseDir + "/pending-units.json"
	// tryingFile has the configurations that were begun since one was applied, as YAML documents. If they fail and another one is
	// published, their files and units are removed.
	tryingFile = nodeagentconfigv1alpha1.BaseDir + "/trying-osc.yaml"
	// documentSeparator is between two YAML documents. No line inside of a document looks like that.
	documentSeparator = "\n---\n"
)

// begun returns the configurations that were begun since one was applied, the newest first.
func (r *reconciler) begun() ([]string, error) {
	data, err := r.Root.Read(tryingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Split(string(data), documentSeparator), err
}

// document is a configuration as it is in tryingFile: without the line break at its end in the Secret.
func document(raw []byte) string { return strings.TrimSpace(string(raw)) }

// readTried reads the configurations that passes before this one did not finish.
func (p *pass) readTried() error {
	begun, err := p.begun()
	if err != nil {
		return err
	}
	for _, document := range begun {
		osc := &extensionsv1alpha1.OperatingSystemConfig{}
		if err := yaml.Unmarshal([]byte(document), osc); err != nil {
			return fmt.Errorf("read %s: %w", tryingFile, err)
		}
		units, files := merge(osc, p.Hostname)
		p.tried, p.unitsTried, p.filesTried = append(p.tried, osc), append(p.unitsTried, units...), append(p.filesTried, files...)
	}
	return nil
}

// try records that this configuration is being applied, if it is not the one that was applied last.
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
	_, err = p.Root.Update(tryingFile, []byte(strings.Join(append([]string{this}, begun...), documentSeparator)), 0o600)
	return err
}

// readPending reads the units that passes before this one have not restarted.
func (p *pass) readPending() error {
	var names []string
	if exists, err := p.readState(pendingFile, &names); !exists || err != nil {
		return err
	}
	for _, name := range names {
		p.restart[name] = true
	}
	p.pending, p.reload = true, true // the pass before may have ended before it reloaded systemd
	return nil
}

// mark saves that units are to be restarted. If it fails, their files must not be changed: the next pass would find them as they should
// be, and not restart the units. That the agent itself has to restart is only kept in memory, as another process has started after the
// change. But systemd may not have read the agent's new unit by then, so pendingFile is written in this case, too.
func (p *pass) mark(units ...string) error {
	if len(units) == 0 {
		return nil
	}
	saved := len(p.restart)
	for _, unit := range units {
		if unit == nodeagentconfigv1alpha1.UnitName {
			p.outdated = true
			continue
		}
		p.restart[unit] = true
	}
	if p.pending && len(p.restart) == saved {
		return nil
	}
	return p.savePending()
}

// markFiles does that for units that use files which are to be changed. If systemd reads one of the files, as it may be a drop-in of a unit that the
// configuration does not have, systemd has to be reloaded.
func (p *pass) markFiles(units []string, files ...string) error {
	if err := p.mark(units...); err != nil || !slices.ContainsFunc(files, ofSystemd) {
		return err
	}
	p.reload = true
	if p.pending {
		return nil
	}
	return p.savePending()
}

// ofSystemd is whether systemd reads a file for its units.
func ofSystemd(file string) bool {
	return slices.ContainsFunc([]string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"}, func(dir string) bool {
		return strings.HasPrefix(path.Clean(file), dir+"/systemd/system/")
	})
}

func (p *pass) savePending() error {
	p.pending = false
	if err := p.writeState(pendingFile, slices.Sorted(maps.Keys(p.restart))); err != nil {
		return fmt.Errorf("save which units are to be restarted: %w", err)
	}
	p.pending = true
	return nil
}

// readState reads what writeState has written. It does nothing if the file does not exist.
func (p *pass) readState(path string, into any) (exists bool, err error) {
	data, err := p.Root.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

// writeState writes what passes after this one have to know.
func (p *pass) writeState(path string, state any) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return p.Root.Write(path, data, 0o600)
}
