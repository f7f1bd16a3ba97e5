package operatingsystemconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/BurntSushi/toml"
	"k8s.io/utils/ptr"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/containerd"
)

const (
	containerdConfig = "/etc/containerd/config.toml"
	// containerdBase is a copy of the machine image's containerdConfig, which every change starts from.
	containerdBase = nodeagentconfigv1alpha1.BaseDir + "/containerd-base.toml"
	// containerdDropIns may have more settings, such as those that depend on the machine and are found at boot.
	containerdDropIns = "/etc/containerd/conf.d/*.toml"

	// containerdPathDropIn is the drop-in of containerd.service with containerdPath. Both are those of the original.
	containerdPathDropIn = "30-env_config.conf"
	// containerdPath is where containerd searches for shims of runtimes, such as that of gVisor: where extensions install them, then the
	// directories of systemd's default.
	containerdPath = extensionsv1alpha1.ContainerDRuntimeContainersBinFolder + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

	pluginImages  = "io.containerd.cri.v1.images"
	pluginRuntime = "io.containerd.cri.v1.runtime"
)

// withContainerdPath returns the units of a configuration. containerd.service has the drop-in that lets it find runtimes of extensions.
func withContainerdPath(osc *extensionsv1alpha1.OperatingSystemConfig) []extensionsv1alpha1.Unit {
	units := Units(osc)
	if !hasContainerd(osc) {
		return units
	}
	const name = extensionsv1alpha1.OperatingSystemConfigUnitNameContainerDService
	service := find(units, name)
	if service == nil {
		units = append(units, extensionsv1alpha1.Unit{Name: name})
		service = &units[len(units)-1]
	}
	if slices.ContainsFunc(service.DropIns, func(d extensionsv1alpha1.DropIn) bool { return d.Name == containerdPathDropIn }) {
		return units // the extension has its own
	}
	service.DropIns = append(service.DropIns, extensionsv1alpha1.DropIn{
		Name: containerdPathDropIn, Content: "[Service]\nEnvironment=\"PATH=" + containerdPath + "\"\n",
	})
	return units
}

// configureContainerd writes containerd's configuration file, if it differs, and creates the directory for runtimes of extensions.
func (p *pass) configureContainerd(ctx context.Context) error {
	if !hasContainerd(p.osc) {
		return nil
	}
	if err := p.Root.MakeDir(extensionsv1alpha1.ContainerDRuntimeContainersBinFolder); err != nil {
		return err
	}
	config, err := p.containerdFile()
	if err != nil {
		return err
	}
	return p.write(ctx, containerdConfig, config, 0o644, extensionsv1alpha1.OperatingSystemConfigUnitNameContainerDService)
}

func hasContainerd(osc *extensionsv1alpha1.OperatingSystemConfig) bool {
	return osc != nil && osc.Spec.CRIConfig != nil && osc.Spec.CRIConfig.Name == extensionsv1alpha1.CRINameContainerD
}

// containerdFile returns the content of containerd's configuration file. The cgroup driver is the one that this kernel supports: systemd
// needs cgroup v2. Kubelets ask containerd for it.
func (p *pass) containerdFile() ([]byte, error) {
	base, err := p.Root.Read(containerdBase)
	if errors.Is(err, fs.ErrNotExist) {
		if base, err = p.Root.Read(containerdConfig); errors.Is(err, fs.ErrNotExist) {
			base, err = []byte("version = 3\n"), nil
		}
		if err != nil {
			return nil, err
		}
		err = p.Root.Write(containerdBase, base, 0o644)
	}
	if err != nil {
		return nil, err
	}
	installed, err := p.installedRuntimes(base)
	if err != nil {
		return nil, err
	}
	cri := p.osc.Spec.CRIConfig
	systemdCgroup := ptr.Deref(cri.CgroupDriver, extensionsv1alpha1.CgroupDriverCgroupfs) == extensionsv1alpha1.CgroupDriverSystemd &&
		p.Root.Exists("/sys/fs/cgroup/cgroup.controllers")
	config, err := containerdSettings(base, cri.Containerd, systemdCgroup, installed)
	if err != nil {
		return nil, err
	}
	return encodeContainerd(config)
}

// containerdSettings returns the content of containerd's configuration file, with the runtimes that others installed. A base of an older
// format is replaced, as its plugins have other names.
func containerdSettings(base []byte, c *extensionsv1alpha1.ContainerdConfig, systemdCgroup bool, installed map[string]any) (map[string]any, error) {
	config := map[string]any{}
	if err := toml.Unmarshal(base, &config); err != nil {
		return nil, fmt.Errorf("read containerd's configuration of the machine image: %w", err)
	}
	if version, _ := config["version"].(int64); version < 3 {
		config = map[string]any{}
	}
	config["version"] = int64(3)
	imports, _ := config["imports"].([]any)
	if !slices.Contains(imports, any(containerdDropIns)) {
		imports = append(imports, containerdDropIns)
		config["imports"] = imports
	}
	plugins := section(config, "plugins")
	maps.Copy(section(plugins, pluginRuntime, "containerd", "runtimes"), installed)
	section(plugins, pluginImages, "registry")["config_path"] = containerd.CertsDir
	section(plugins, pluginRuntime, "containerd", "runtimes", "runc")["runtime_type"] = "io.containerd.runc.v2"
	section(plugins, pluginRuntime, "containerd", "runtimes", "runc", "options")["SystemdCgroup"] = systemdCgroup
	if c != nil {
		if c.SandboxImage != "" {
			section(plugins, pluginImages, "pinned_images")["sandbox"] = c.SandboxImage
		}
		for i, change := range c.Plugins {
			if err := changePlugin(plugins, change); err != nil {
				return nil, fmt.Errorf("criConfig.containerd.plugins[%d]: %w", i, err)
			}
		}
	}
	return config, nil
}

func encodeContainerd(config map[string]any) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# Written by gardener-node-agent. What is in conf.d wins.\n")
	encoder := toml.NewEncoder(&out)
	encoder.Indent = ""
	if err := encoder.Encode(config); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// section returns a table below a table, which is created if it is missing.
func section(table map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, ok := table[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			table[key] = next
		}
		table = next
	}
	return table
}

func changePlugin(plugins map[string]any, change extensionsv1alpha1.PluginConfig) error {
	if len(change.Path) == 0 {
		return errors.New("path is empty")
	}
	if ptr.Deref(change.Op, extensionsv1alpha1.AddPluginPathOperation) == extensionsv1alpha1.RemovePluginPathOperation {
		path := currentPath(change.Path)
		delete(section(plugins, path[:len(path)-1]...), path[len(path)-1])
		return nil
	}
	values := map[string]any{}
	if change.Values != nil {
		decoder := json.NewDecoder(bytes.NewReader(change.Values.Raw))
		decoder.UseNumber() // an integer stays one
		if err := decoder.Decode(&values); err != nil {
			return fmt.Errorf("values: %w", err)
		}
	}
	setValues(plugins, change.Path, fromJSON(values).(map[string]any)) // a map stays one
	return nil
}

// fromJSON converts numbers to the types of TOML.
func fromJSON(value any) any {
	switch v := value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64() // the decoder let it pass
		return f
	case map[string]any:
		for key := range v {
			v[key] = fromJSON(v[key])
		}
	case []any:
		for i := range v {
			v[i] = fromJSON(v[i])
		}
	}
	return value
}
