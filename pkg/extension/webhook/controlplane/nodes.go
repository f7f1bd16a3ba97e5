package controlplane

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// KubeletConfiguration is the configuration of kubelets.
type KubeletConfiguration = kubeletconfigv1beta1.KubeletConfiguration

// Names of units and files that the gardenlet writes.
const (
	kubeletUnit    = "kubelet.service"
	kubeletConfig  = "/var/lib/kubelet/config/kubelet"
	kernelSettings = "/etc/sysctl.d/99-k8s-general.conf"
)

// operatingSystemConfig calls the functions that change an OperatingSystemConfig. Those for the kubelet and the kernel are only in the one of nodes.
func (e Ensurer) operatingSystemConfig(ctx context.Context, shoot Shoot, osc *extensionsv1alpha1.OperatingSystemConfig) error {
	if osc.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
		for i := range osc.Spec.Units {
			u := &osc.Spec.Units[i]
			if e.KubeletFlags == nil || u.Name != kubeletUnit || u.Content == nil {
				continue
			}
			content, err := editFlags(*u.Content, func(flags []string) ([]string, error) { return e.KubeletFlags(ctx, shoot, flags) })
			if err != nil {
				return fmt.Errorf("unit %s: %w", u.Name, err)
			}
			u.Content = &content
		}
		for i := range osc.Spec.Files {
			file := &osc.Spec.Files[i]
			var change func([]byte) ([]byte, error)
			switch {
			case file.Content.Inline == nil:
			case file.Path == kubeletConfig && e.KubeletConfiguration != nil:
				change = func(data []byte) ([]byte, error) {
					return editYAML(data, func(c *KubeletConfiguration) error { return e.KubeletConfiguration(ctx, shoot, c) })
				}
			case file.Path == kernelSettings && e.KernelSettings != nil:
				change = func(data []byte) ([]byte, error) {
					return editSettings(data, func(s map[string]string) error { return e.KernelSettings(ctx, shoot, s) })
				}
			}
			if change == nil {
				continue
			}
			if err := editInline(file.Content.Inline, change); err != nil {
				return fmt.Errorf("file %s: %w", file.Path, err)
			}
		}
	}
	if e.OperatingSystemConfig != nil {
		return e.OperatingSystemConfig(ctx, shoot, osc)
	}
	return nil
}

// SetUnit adds a unit, or replaces the one with its name.
func SetUnit(osc *extensionsv1alpha1.OperatingSystemConfig, u extensionsv1alpha1.Unit) {
	if i := slices.IndexFunc(osc.Spec.Units, func(other extensionsv1alpha1.Unit) bool { return other.Name == u.Name }); i >= 0 {
		osc.Spec.Units[i] = u
		return
	}
	osc.Spec.Units = append(osc.Spec.Units, u)
}

// SetFile adds a file, or replaces the one at its path.
func SetFile(osc *extensionsv1alpha1.OperatingSystemConfig, file extensionsv1alpha1.File) {
	if i := slices.IndexFunc(osc.Spec.Files, func(other extensionsv1alpha1.File) bool { return other.Path == file.Path }); i >= 0 {
		osc.Spec.Files[i] = file
		return
	}
	osc.Spec.Files = append(osc.Spec.Files, file)
}

// editFlags changes the flags of the command that a unit runs.
func editFlags(content string, change func([]string) ([]string, error)) (string, error) {
	options, err := unit.DeserializeOptions(strings.NewReader(content))
	if err != nil {
		return "", err
	}
	for _, option := range options {
		if option.Section != "Service" || option.Name != "ExecStart" {
			continue
		}
		words := strings.Fields(strings.ReplaceAll(option.Value, "\\\n", " "))
		if len(words) == 0 {
			continue
		}
		// Variables of the environment come last, so that what they have goes before.
		flags, variables := words[1:], []string(nil)
		if i := slices.IndexFunc(flags, func(word string) bool { return strings.HasPrefix(word, "$") }); i >= 0 {
			flags, variables = flags[:i:i], flags[i:]
		}
		flags, err := change(flags)
		if err != nil {
			return "", err
		}
		option.Value = strings.Join(slices.Concat(words[:1], flags, variables), " \\\n    ")
	}
	out, err := io.ReadAll(unit.Serialize(options))
	return string(out), err
}

// editInline changes the content of a file, in its encoding.
func editInline(inline *extensionsv1alpha1.FileContentInline, change func([]byte) ([]byte, error)) error {
	data, encoded := []byte(inline.Data), inline.Encoding == string(extensionsv1alpha1.B64FileCodecID)
	if encoded {
		var err error
		if data, err = base64.StdEncoding.DecodeString(inline.Data); err != nil {
			return fmt.Errorf("it is not valid base64: %w", err)
		}
	}
	data, err := change(data)
	if err != nil {
		return err
	}
	inline.Data = string(data)
	if encoded {
		inline.Data = base64.StdEncoding.EncodeToString(data)
	}
	return nil
}

// editYAML changes a configuration. Fields that this version of its type does not have are lost, so that such a configuration is refused.
func editYAML[T any](data []byte, change func(*T) error) ([]byte, error) {
	config := new(T)
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		return nil, err
	}
	if err := change(config); err != nil {
		return nil, err
	}
	return yaml.Marshal(config)
}

// editSettings changes settings of the form "key = value", which are sorted afterwards. Comments are left out.
func editSettings(data []byte, change func(map[string]string) error) ([]byte, error) {
	settings := map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); ok && !strings.HasPrefix(key, "#") && !strings.HasPrefix(key, ";") {
			settings[key] = strings.TrimSpace(value)
		}
	}
	if err := change(settings); err != nil {
		return nil, err
	}
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&out, "%s = %s\n", key, settings[key])
	}
	return []byte(out.String()), nil
}
