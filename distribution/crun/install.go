package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/BurntSushi/toml"
)

const (
	// name is the name of the runtime, and of the script that starts it.
	name = "crun"
	// mainConfig is containerd's configuration file, and dropIns are the files that it imports. dropIn is the one with the runtime.
	mainConfig = "/etc/containerd/config.toml"
	dropIns    = "/etc/containerd/conf.d/*.toml"
	dropIn     = "/etc/containerd/conf.d/50-crun.toml"

	pluginRuntime = "io.containerd.cri.v1.runtime"
)

// service is containerd on the node.
type service interface {
	// Started is when it has started.
	Started(ctx context.Context) (time.Time, error)
	// Restart restarts it, and waits until it is ready.
	Restart(ctx context.Context) error
}

// installation installs crun on a node.
type installation struct {
	// source is the directory with the binary, and in lib its libraries and ld.so, their loader.
	source string
	// root is the directory below which the directories of the node are.
	root string
	// directory is that on the node for binaries of runtimes.
	directory string
	// containerd is the service on the node.
	containerd service
}

// run installs crun. The drop-in comes last: containerd must find what it names.
func (i installation) run(ctx context.Context) error {
	files := filepath.Join(i.directory, name+".d")
	if err := i.copyFiles(files); err != nil {
		return err
	}
	if err := i.write(filepath.Join(i.directory, name), script(files), 0o755); err != nil {
		return err
	}
	systemd, err := i.systemdCgroup()
	if err != nil {
		return err
	}
	config, err := runtimeConfig(filepath.Join(i.directory, name), systemd)
	if err != nil {
		return err
	}
	if err := i.write(dropIn, config, 0o644); err != nil {
		return err
	}
	return i.restart(ctx)
}

// restart restarts a containerd that has not read the drop-in. That it was written by a former run that was interrupted makes no difference.
func (i installation) restart(ctx context.Context) error {
	written, err := os.Stat(i.path(dropIn))
	if err != nil {
		return err
	}
	started, err := i.containerd.Started(ctx)
	if err != nil {
		return fmt.Errorf("find out when containerd has started: %w", err)
	}
	if started.After(written.ModTime()) {
		return nil
	}
	fmt.Fprintln(os.Stderr, "install-crun: restarting containerd, which has started before its configuration was written")
	if err := i.containerd.Restart(ctx); err != nil {
		return fmt.Errorf("restart containerd: %w", err)
	}
	return nil
}

// copyFiles copies the binary and its libraries.
func (i installation) copyFiles(to string) error {
	return filepath.WalkDir(i.source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(i.source, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return i.write(filepath.Join(to, relative), content, 0o755)
	})
}

// script starts crun with its own libraries, as those of the node may be older, or missing.
func script(files string) []byte {
	return fmt.Appendf(nil, "#!/bin/sh\nexec %[1]s/lib/ld.so --library-path %[1]s/lib %[1]s/crun \"$@\"\n", files)
}

// runtimeConfig is the drop-in.
func runtimeConfig(binary string, systemdCgroup bool) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# Written by install-crun.\n")
	encoder := toml.NewEncoder(&out)
	encoder.Indent = ""
	err := encoder.Encode(map[string]any{"version": 3, "plugins": map[string]any{pluginRuntime: map[string]any{
		"containerd": map[string]any{"runtimes": map[string]any{name: map[string]any{
			"runtime_type": "io.containerd.runc.v2",
			"options":      map[string]any{"BinaryName": binary, "SystemdCgroup": systemdCgroup},
		}}},
	}}})
	return out.Bytes(), err
}

// systemdCgroup is whether cgroups of the node are those of systemd: all runtimes have to agree with the kubelet, as runc does.
func (i installation) systemdCgroup() (bool, error) {
	files, err := filepath.Glob(i.path(dropIns))
	if err != nil {
		return false, err
	}
	systemd := false
	for _, file := range slices.Concat([]string{i.path(mainConfig)}, files) { // the last one wins
		var config struct {
			Plugins map[string]struct {
				Containerd struct {
					Runtimes map[string]struct {
						Options struct{ SystemdCgroup *bool }
					}
				}
			}
		}
		if _, err := toml.DecodeFile(file, &config); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return false, fmt.Errorf("read containerd's configuration %s: %w", file, err)
		}
		if set := config.Plugins[pluginRuntime].Containerd.Runtimes["runc"].Options.SystemdCgroup; set != nil {
			systemd = *set
		}
	}
	return systemd, nil
}

// path is where a path of the node is.
func (i installation) path(path string) string { return filepath.Join(i.root, path) }

// write writes a file of the node, whole or not at all, and with its directories. One that is as it should be is not touched: its time says whether
// containerd has read it, and a program that runs is not replaced without need.
func (i installation) write(path string, content []byte, mode os.FileMode) error {
	path = i.path(path)
	if same, err := hasContent(path, content, mode); err != nil || same {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".install-crun-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // gone after the rename
	if _, err := temp.Write(content); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := errors.Join(temp.Chmod(mode), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func hasContent(path string, content []byte, mode os.FileMode) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	have, err := os.ReadFile(path)
	return err == nil && info.Mode().Perm() == mode && bytes.Equal(have, content), err
}
