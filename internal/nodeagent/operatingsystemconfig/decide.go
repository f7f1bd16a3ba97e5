package operatingsystemconfig

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	unitDir = "/etc/systemd/system"
	// dropInSuffix ends the directory with the drop-ins of a unit.
	dropInSuffix = ".d"
)

// Units returns the units of a configuration with those of the extension, which changes units of the same name by what it sets.
func Units(osc *extensionsv1alpha1.OperatingSystemConfig) []extensionsv1alpha1.Unit {
	var units []extensionsv1alpha1.Unit
	for _, unit := range slices.Concat(osc.Spec.Units, osc.Status.ExtensionUnits) {
		at := slices.IndexFunc(units, func(u extensionsv1alpha1.Unit) bool { return u.Name == unit.Name })
		if at < 0 {
			units = append(units, *unit.DeepCopy())
			continue
		}
		have := &units[at]
		if unit.Content != nil {
			have.Content = unit.Content
		}
		if unit.Command != nil {
			have.Command = unit.Command
		}
		if unit.Enable != nil {
			have.Enable = unit.Enable
		}
		for _, dropIn := range unit.DropIns {
			have.DropIns = slices.DeleteFunc(have.DropIns, func(d extensionsv1alpha1.DropIn) bool { return d.Name == dropIn.Name })
			have.DropIns = append(have.DropIns, dropIn)
		}
		have.FilePaths = append(have.FilePaths, unit.FilePaths...)
	}
	return units
}

// merge returns the units and files of a configuration with those of the extension, which replaces files of the same path. Files for other
// nodes are left out.
func merge(osc *extensionsv1alpha1.OperatingSystemConfig, hostname string) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File) {
	var files []extensionsv1alpha1.File
	for _, file := range slices.Concat(osc.Spec.Files, osc.Status.ExtensionFiles) {
		if file.HostName != nil && *file.HostName != hostname {
			continue
		}
		files = slices.DeleteFunc(files, func(f extensionsv1alpha1.File) bool { return f.Path == file.Path })
		files = append(files, file)
	}
	return Units(osc), files
}

// content decodes what is in a file.
func content(file extensionsv1alpha1.File) ([]byte, error) {
	in := file.Content.Inline
	switch {
	case in == nil:
		return nil, fmt.Errorf("file %s has neither content nor an image that it is in", file.Path)
	case in.Encoding == string(extensionsv1alpha1.PlainFileCodecID):
		return []byte(in.Data), nil
	case in.Encoding == string(extensionsv1alpha1.B64FileCodecID):
		data, err := base64.StdEncoding.DecodeString(in.Data)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", file.Path, err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("file %s has the unknown encoding %q", file.Path, in.Encoding)
}

// mode is the permission bits of a file.
func mode(file extensionsv1alpha1.File) fs.FileMode {
	return fs.FileMode(ptr.Deref(file.Permissions, 0o644)).Perm()
}

// unitFiles are the files that make up a unit.
func unitFiles(unit extensionsv1alpha1.Unit) []extensionsv1alpha1.File {
	plain := func(path, data string) extensionsv1alpha1.File {
		inline := &extensionsv1alpha1.FileContentInline{Data: data}
		return extensionsv1alpha1.File{Path: path, Content: extensionsv1alpha1.FileContent{Inline: inline}}
	}
	var files []extensionsv1alpha1.File
	if unit.Content != nil {
		files = append(files, plain(unitDir+"/"+unit.Name, *unit.Content))
	}
	for _, dropIn := range unit.DropIns {
		files = append(files, plain(unitDir+"/"+unit.Name+dropInSuffix+"/"+dropIn.Name, dropIn.Content))
	}
	return files
}

// obsolete are the paths of files that were there and are wanted no more.
func obsolete(before, now []extensionsv1alpha1.File) []string {
	var paths []string
	for _, file := range before {
		if !slices.ContainsFunc(now, func(f extensionsv1alpha1.File) bool { return f.Path == file.Path }) {
			paths = append(paths, file.Path)
		}
	}
	return paths
}

// find returns the unit of a name, or nil.
func find(units []extensionsv1alpha1.Unit, name string) *extensionsv1alpha1.Unit {
	if at := slices.IndexFunc(units, func(u extensionsv1alpha1.Unit) bool { return u.Name == name }); at >= 0 {
		return &units[at]
	}
	return nil
}

// differs tells whether something about a unit, besides its files, is another than it was.
func differs(before *extensionsv1alpha1.Unit, now extensionsv1alpha1.Unit) bool {
	return before == nil || !reflect.DeepEqual(before.Enable, now.Enable) || !reflect.DeepEqual(before.Command, now.Command)
}

// waitFor is how long to wait before a configuration is applied: not at all for a machine's first one, and otherwise what the Node says,
// counted from when it was first seen. An annotation that makes no sense means no wait.
func waitFor(first bool, annotation string, seen, now time.Time) time.Duration {
	delay, err := time.ParseDuration(annotation)
	if first || err != nil {
		return 0
	}
	return max(0, seen.Add(delay).Sub(now))
}
