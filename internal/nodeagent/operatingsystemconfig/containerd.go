package operatingsystemconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"k8s.io/utils/ptr"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

const (
	containerdConfig = "/etc/containerd/config.toml"
	// containerdBase is what the machine image had there. Every change starts from it.
	containerdBase = nodeagentconfigv1alpha1.BaseDir + "/containerd-base.toml"
	// containerdDropIns may have more, such as what the machine finds out about itself when it boots.
	containerdDropIns = "/etc/containerd/conf.d/*.toml"

	pluginImages  = "io.containerd.cri.v1.images"
	pluginRuntime = "io.containerd.cri.v1.runtime"
)

// containerdFiles are the files that make containerd what it should be. The cgroup driver is the one that this kernel has: systemd needs
// cgroup v2. Kubelets ask containerd for it.
func containerdFiles(root rootfs.Dir, cri *extensionsv1alpha1.CRIConfig) (config []byte, err error) {
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
	return configureContainerd(base, cri.Containerd, systemdCgroup)
}

// configureContainerd renders containerd's configuration file. A base of an older format is replaced, as its plugins have other names.
func configureContainerd(base []byte, c *extensionsv1alpha1.ContainerdConfig, systemdCgroup bool) ([]byte, error) {
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
	section(plugins, pluginImages, "registry")["config_path"] = imagefile.CertsDir
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

// section returns a table below a table, and makes it if need be.
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

// fromJSON turns numbers into what TOML has.
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

// hostsPath is where containerd looks for the hosts of a registry.
func hostsPath(upstream string) string { return imagefile.CertsDir + "/" + upstream + "/hosts.toml" }

// hosts renders the hosts of a registry. Their order matters, so it is written by hand.
func hosts(registry extensionsv1alpha1.RegistryConfig) []byte {
	var out strings.Builder
	out.WriteString("# Written by gardener-node-agent.\n")
	if registry.Server != nil {
		fmt.Fprintf(&out, "server = %s\n", quote(*registry.Server))
	}
	for _, host := range registry.Hosts {
		fmt.Fprintf(&out, "\n[host.%s]\n", quote(host.URL))
		capabilities := host.Capabilities
		if len(capabilities) == 0 {
			capabilities = []extensionsv1alpha1.RegistryCapability{extensionsv1alpha1.PullCapability, extensionsv1alpha1.ResolveCapability}
		}
		fmt.Fprintf(&out, "capabilities = %s\n", list(capabilities))
		if len(host.CACerts) > 0 {
			fmt.Fprintf(&out, "ca = %s\n", list(host.CACerts))
		}
		if ptr.Deref(host.OverridePath, false) {
			out.WriteString("override_path = true\n")
		}
	}
	return []byte(out.String())
}

// quote writes a string as TOML has it. JSON's way is one of them.
func quote(s string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // strings can be encoded, and buffers written
	return strings.TrimSpace(out.String())
}

func list[S ~string](values []S) string {
	var quoted []string
	for _, value := range values {
		quoted = append(quoted, quote(string(value)))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
