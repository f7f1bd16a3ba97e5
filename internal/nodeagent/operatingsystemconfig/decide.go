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

const unitDir = "/etc/systemd/system"

// Units returns the units of a configuration with those of the extension. For units of the same name, fields that the extension sets win.
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

// merge returns the units and files of a configuration with those of the extension, which replaces files of the same path, and the drop-in
// of containerd. Files for other nodes are left out.
func merge(osc *extensionsv1alpha1.OperatingSystemConfig, hostname string) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File) {
	var files []extensionsv1alpha1.File
	for _, file := range slices.Concat(osc.Spec.Files, osc.Status.ExtensionFiles) {
		if file.HostName != nil && *file.HostName != hostname {
			continue
		}
		files = slices.DeleteFunc(files, func(f extensionsv1alpha1.File) bool { return f.Path == file.Path })
		files = append(files, file)
	}
	return withContainerdPath(osc), files
}

// content decodes the inline content of a file.
func content(file extensionsv1alpha1.File) ([]byte, error) {
	in := file.Content.Inline
	switch {
	case in == nil:
		return nil, fmt.Errorf("file %s has neither inline content nor an image reference", file.Path)
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

// dropInDir is the directory with the drop-ins of a unit.
func dropInDir(unit string) string { return unitDir + "/" + unit + ".d" }

// unitFiles are the unit file and the drop-ins of a unit.
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
		files = append(files, plain(dropInDir(unit.Name)+"/"+dropIn.Name, dropIn.Content))
	}
	return files
}

// obsolete are the paths of files that are among the earlier ones and not among the current ones.
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

// differs reports whether the enablement or the command of a unit changed.
func differs(before *extensionsv1alpha1.Unit, now extensionsv1alpha1.Unit) bool {
	return before == nil || !reflect.DeepEqual(before.Enable, now.Enable) || !reflect.DeepEqual(before.Command, now.Command)
}

// waitFor is how long to wait before a configuration is applied: not at all for a machine's first one, otherwise the delay in the Node's
// annotation, counted from when the configuration was first seen. An invalid annotation counts as no delay.
func waitFor(first bool, annotation string, seen, now time.Time) time.Duration {
	delay, err := time.ParseDuration(annotation)
	if first || err != nil {
		return 0
	}
	return max(0, seen.Add(delay).Sub(now))
}
