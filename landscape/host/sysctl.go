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

// atLeast are kernel settings that machines need; a higher value is left alone.
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

// Settings remembers the host's kernel settings as they were before the first landscape, so that the last one to go can
// put them back.
type Settings struct {
	// File is where the values are kept. It is best on a file system that a reboot empties, as a reboot resets the settings.
	File string
	// Root is where the settings are found, /proc/sys but for tests.
	Root string
}

// Apply remembers what the settings are, unless that is known already, and raises those that machines need higher.
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

// Restore puts the settings back and forgets them. It does nothing if none were remembered.
func (s Settings) Restore() error {
	before, err := s.load()
	if err != nil || before == nil {
		return err
	}
	var errs []error
	for key, value := range before {
		if value == "" || s.read(key) == value {
			continue // The kernel has no such setting, or nobody changed it.
		}
		if err := os.WriteFile(s.path(key), []byte(value), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("set kernel setting %s=%s back: %w", key, value, err))
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
		return nil, fmt.Errorf("read remembered kernel settings %s: %w", s.File, err)
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

// WriteFile writes a file whole or not at all.
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
