package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// atLeast are the smallest values of kernel settings that machines need; higher values are kept.
var atLeast = map[string]int64{
	"net.ipv4.ip_forward":           1,
	"fs.inotify.max_user_instances": 2048, // systemd, containerd and kubelet of every machine share root's instances.
	"fs.inotify.max_user_watches":   524288,
}

// changedByMachines are kernel settings of the whole host that kubelet and kube-proxy write in a machine.
var changedByMachines = []string{
	"kernel.panic",
	"kernel.panic_on_oops",
	"kernel.keys.root_maxbytes",
	"kernel.keys.root_maxkeys",
	"vm.overcommit_memory",
	"vm.panic_on_oom",
	"net.netfilter.nf_conntrack_max",
}

// Settings saves the host's kernel settings before the first landscape changes them, so that they are restored with the last one.
type Settings struct {
	// File holds the values. It should be on a file system that a reboot empties, as a reboot resets the settings.
	File string
	// Root is the directory of the settings, /proc/sys but for tests.
	Root string
}

// Apply saves the current settings, unless they are saved already, and raises those that are too low for machines.
func (s Settings) Apply() error {
	before, err := s.load()
	if err != nil {
		return err
	}
	if before == nil {
		before = map[string]string{}
		for key := range atLeast {
			before[key] = s.read(key)
		}
		for _, key := range changedByMachines {
			before[key] = s.read(key)
		}
		if err := s.save(before); err != nil {
			return err
		}
	}
	for key, want := range atLeast {
		if have, err := strconv.ParseInt(s.read(key), 10, 64); err == nil && have >= want {
			continue
		}
		if err := os.WriteFile(s.path(key), []byte(strconv.FormatInt(want, 10)), 0o644); err != nil {
			return fmt.Errorf("set kernel setting %s=%d: %w", key, want, err)
		}
	}
	return nil
}

// Restore restores the saved settings and removes the file. It does nothing if none are saved.
func (s Settings) Restore() error {
	before, err := s.load()
	if err != nil || before == nil {
		return err
	}
	var errs []error
	for key, value := range before {
		if value == "" || s.read(key) == value {
			continue // The kernel has no such setting, or it has not changed.
		}
		if err := os.WriteFile(s.path(key), []byte(value), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("restore kernel setting %s=%s: %w", key, value, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.Remove(s.File)
}

func (s Settings) path(key string) string {
	return filepath.Join(s.Root, strings.ReplaceAll(key, ".", "/"))
}

func (s Settings) read(key string) string {
	data, err := os.ReadFile(s.path(key))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (s Settings) load() (map[string]string, error) {
	data, err := os.ReadFile(s.File)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var before map[string]string
	if err := json.Unmarshal(data, &before); err != nil {
		return nil, fmt.Errorf("read saved kernel settings %s: %w", s.File, err)
	}
	return before, nil
}

func (s Settings) save(before map[string]string) error {
	data, err := json.MarshalIndent(before, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(s.File, data, 0o600)
}

// WriteFile writes a file atomically.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // gone after the rename
	if _, err := temp.Write(data); err != nil {
		temp.Close()
		return err
	}
	if err := errors.Join(temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
