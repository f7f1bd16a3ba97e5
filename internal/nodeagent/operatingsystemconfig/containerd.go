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
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/pkg/containerd"
)

const (
	containerdConfig = "/etc/containerd/config.toml"
	// containerdBase is a copy of the machine image's containerdConfig, which every change starts from.
	containerdBase = nodeagentconfigv1alpha1.BaseDir + "/containerd-base.toml"
	// containerdDropIns may have more settings, such as those that depend on the machine and are found at boot.
	containerdDropIns = "/etc/containerd/conf.d/*.toml"

	pluginImages  = "io.containerd.cri.v1.images"
	pluginRuntime = "io.containerd.cri.v1.runtime"
)

// configureContainerd writes containerd's configuration file, if it differs.
func (p *pass) configureContainerd(ctx context.Context) error {
	if !hasContainerd(p.osc) {
		return nil
	}
	config, err := containerdFile(p.Root, p.osc.Spec.CRIConfig)
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
func containerdFile(root rootfs.Dir, cri *extensionsv1alpha1.CRIConfig) ([]byte, error) {
	base, err := root.Read(containerdBase)
	if errors.Is(err, fs.ErrNotExist) {
		if base, err = root.Read(containerdConfig); errors.Is(err, fs.ErrNotExist) {
			base, err = []byte("version = 3\n"), nil
		}
		if err != nil {
			return nil, err
		}
		err = root.Write(containerdBase, base, 0o644)
	}
	if err != nil {
		return nil, err
	}
	systemdCgroup := ptr.Deref(cri.CgroupDriver, extensionsv1alpha1.CgroupDriverCgroupfs) == extensionsv1alpha1.CgroupDriverSystemd &&
		root.Exists("/sys/fs/cgroup/cgroup.controllers")
	return renderContainerd(base, cri.Containerd, systemdCgroup)
}

// renderContainerd renders containerd's configuration file. A base of an older format is replaced, as its plugins have other names.
func renderContainerd(base []byte, c *extensionsv1alpha1.ContainerdConfig, systemdCgroup bool) ([]byte, error) {
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
		delete(section(plugins, change.Path[:len(change.Path)-1]...), change.Path[len(change.Path)-1])
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
	maps.Copy(section(plugins, change.Path...), fromJSON(values).(map[string]any)) // a map stays one
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
