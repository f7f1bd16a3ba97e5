package operatingsystemconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// editsFile has the edits that are known.
const editsFile = nodeagentconfigv1alpha1.BaseDir + "/edited-files.json"

// edit is what a unit made of one of its files when it was started: extensions for operating systems have scripts in ExecStartPre that adapt, for example,
// the configuration of the kubelet to the system. Such a file differs from the configuration and is to stay as it is. If it were written again in each
// pass, the unit would be restarted each time.
type edit struct {
	// Cause is the checksum of all that the edit follows from: the units that use the file, and all of their files as they are in the configuration.
	Cause string `json:"cause"`
	// Found is the checksum of the file after the units were started.
	Found string `json:"found"`
}

// edits are the known ones, by the paths of the files.
type edits map[string]edit

// readEdits reads the edits that passes before this one have found.
func (p *pass) readEdits() error {
	p.edits = edits{}
	_, err := p.readState(editsFile, &p.edits)
	return err
}

// isEdit reports whether a file that differs from the configuration is as its units left it.
func (p *pass) isEdit(path string, mode fs.FileMode) (bool, error) {
	known, ok := p.edits[path]
	if !ok {
		return false, nil
	}
	cause, err := p.cause(path)
	if err != nil || cause != known.Cause {
		return false, err
	}
	found, err := p.Root.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || checksumOf(found) != known.Found {
		return false, err
	}
	return p.Root.Same(path, found, mode)
}

// recordEdits compares the files of the units that this pass has started with the configuration. They were as it says before: what differs now was edited by
// the units.
func (p *pass) recordEdits() error {
	now := maps.Clone(p.edits)
	for path := range now {
		if !slices.ContainsFunc(p.files, func(f extensionsv1alpha1.File) bool { return f.Path == path }) {
			delete(now, path)
		}
	}
	for _, file := range p.files {
		users := usersOf(file.Path, p.units)
		if file.Content.Inline == nil || !slices.ContainsFunc(users, func(unit string) bool { return slices.Contains(p.started, unit) }) {
			continue
		}
		want, err := content(file)
		if err != nil {
			return err
		}
		found, err := p.Root.Read(file.Path)
		if errors.Is(err, fs.ErrNotExist) { // the next pass writes it
			delete(now, file.Path)
			continue
		}
		if err != nil {
			return err
		}
		if slices.Equal(want, found) {
			delete(now, file.Path)
			continue
		}
		cause, err := p.cause(file.Path)
		if err != nil {
			return err
		}
		now[file.Path] = edit{Cause: cause, Found: checksumOf(found)}
	}
	if maps.Equal(now, p.edits) {
		return nil
	}
	if err := p.writeState(editsFile, now); err != nil {
		return fmt.Errorf("save which files were edited by units: %w", err)
	}
	p.edits = now
	return nil
}

// cause returns the checksum of what an edit of a file follows from.
func (p *pass) cause(path string) (string, error) {
	sum := sha256.New()
	out := json.NewEncoder(sum)
	for _, unit := range p.units {
		if !slices.Contains(unit.FilePaths, path) {
			continue
		}
		if err := out.Encode(unit); err != nil {
			return "", err
		}
		for _, file := range p.files {
			if !slices.Contains(unit.FilePaths, file.Path) {
				continue
			}
			if err := out.Encode(file); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
