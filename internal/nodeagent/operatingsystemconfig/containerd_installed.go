package operatingsystemconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/BurntSushi/toml"
)

// installedRuntimes returns the runtimes that others added to containerd's configuration file: installers of extensions, such as that of
// gVisor, write theirs there, and do so only once on a machine. They are what is neither from the machine image nor from a configuration
// that was applied or begun before.
func (p *pass) installedRuntimes(base []byte) (map[string]any, error) {
	data, err := p.Root.Read(containerdConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	current := map[string]any{}
	if toml.Unmarshal(data, &current) != nil {
		return nil, nil // containerd cannot read it either, so it is replaced
	}
	installed := runtimesOf(current)
	image := map[string]any{}
	if err := toml.Unmarshal(base, &image); err != nil {
		return nil, fmt.Errorf("read containerd's configuration of the machine image: %w", err)
	}
	for name := range runtimesOf(image) {
		delete(installed, name)
	}
	delete(installed, "runc") // the agent configures it
	for _, osc := range append(p.tried, p.before) {
		if !hasContainerd(osc) {
			continue
		}
		written, err := containerdSettings(base, osc.Spec.CRIConfig.Containerd, false, nil)
		if err != nil {
			continue // so it was not written
		}
		subtract(installed, runtimesOf(written))
	}
	return installed, nil
}

// runtimesOf returns the runtimes of a configuration. Installers may write them where containerd 1.x has them.
func runtimesOf(config map[string]any) map[string]any {
	runtimes := map[string]any{}
	for _, plugin := range []string{pluginCRI, pluginRuntime} {
		maps.Copy(runtimes, section(config, "plugins", plugin, "containerd", "runtimes"))
	}
	return runtimes
}

// subtract removes from a table what another one has, whatever the values.
func subtract(table, other map[string]any) {
	for key, value := range other {
		inner, isTable := table[key].(map[string]any)
		without, alsoTable := value.(map[string]any)
		if isTable && alsoTable {
			if subtract(inner, without); len(inner) > 0 {
				continue
			}
		}
		delete(table, key)
	}
}
