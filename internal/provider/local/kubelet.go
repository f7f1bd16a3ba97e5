package local

import (
	"encoding/base64"
	"fmt"

	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// kubeletConfigFile is the file with the settings of the kubelet, as the gardenlet names it.
const kubeletConfigFile = "/var/lib/kubelet/config/kubelet"

// sharedDisk are settings of a kubelet whose disk is shared with all other machines: evicting the pods of one machine because of its usage
// would hardly free space.
var sharedDisk = map[string]any{
	"evictionHard": map[string]any{
		"imagefs.available": "1%", "imagefs.inodesFree": "1%", "nodefs.available": "1%", "nodefs.inodesFree": "1%",
	},
	"evictionSoft": map[string]any{
		"imagefs.available": "1%", "imagefs.inodesFree": "1%", "nodefs.available": "1%", "nodefs.inodesFree": "1%",
	},
	"imageGCHighThresholdPercent": 100,
	"imageGCLowThresholdPercent":  99,
}

// kubeletOnSharedDisk returns the file with the kubelet's settings, with those about disks replaced. Settings about memory are kept.
func kubeletOnSharedDisk(files []extensionsv1alpha1.File) ([]extensionsv1alpha1.File, error) {
	for _, file := range files {
		if file.Path != kubeletConfigFile || file.Content.Inline == nil {
			continue
		}
		data := []byte(file.Content.Inline.Data)
		if file.Content.Inline.Encoding == string(extensionsv1alpha1.B64FileCodecID) {
			var err error
			if data, err = base64.StdEncoding.DecodeString(file.Content.Inline.Data); err != nil {
				return nil, fmt.Errorf("decode %s: %w", file.Path, err)
			}
		}
		config := map[string]any{}
		if err := yaml.Unmarshal(data, &config); err != nil {
			return nil, fmt.Errorf("decode %s: %w", file.Path, err)
		}
		for key, value := range sharedDisk {
			limits, ok := value.(map[string]any)
			if !ok {
				config[key] = value
				continue
			}
			existing, ok := config[key].(map[string]any)
			if !ok {
				if key == "evictionSoft" {
					continue // a soft limit needs a grace period beside it
				}
				existing = map[string]any{}
			}
			for signal, limit := range limits {
				if _, ok := existing[signal]; ok || key == "evictionHard" {
					existing[signal] = limit
				}
			}
			config[key] = existing
		}
		data, err := yaml.Marshal(config)
		if err != nil {
			return nil, err
		}
		changed := *file.DeepCopy()
		changed.Content.Inline = &extensionsv1alpha1.FileContentInline{Data: string(data)}
		return []extensionsv1alpha1.File{changed}, nil
	}
	return nil, nil
}
