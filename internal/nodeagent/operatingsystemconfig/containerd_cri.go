package operatingsystemconfig

import (
	"maps"
	"slices"
)

// pluginCRI is the plugin that had all settings before version 3 of the configuration, whose paths extensions still use. containerd 2 has
// only those of its streaming server there, and the others in pluginImages and pluginRuntime.
const pluginCRI = "io.containerd.grpc.v1.cri"

var (
	serverKeys = []string{
		"disable_tcp_service", "stream_server_address", "stream_server_port", "stream_idle_timeout", "enable_tls_streaming", "x509_key_pair_streaming",
	}
	imageKeys = []string{
		"registry", "image_decryption", "max_concurrent_downloads", "image_pull_progress_timeout", "image_pull_with_sync_fs", "stats_collect_period",
	}
	// snapshotKeys were below "containerd".
	snapshotKeys = []string{"snapshotter", "disable_snapshot_annotations", "discard_unpacked_layers"}
)

// currentPath returns where containerd 2 has a setting, or a table of settings, of pluginCRI. Other paths stay as they are.
func currentPath(path []string) []string {
	if path[0] != pluginCRI || len(path) == 1 {
		return path
	}
	switch rest := path[1:]; {
	case slices.Contains(serverKeys, rest[0]):
		return path
	case rest[0] == "sandbox_image":
		return []string{pluginImages, "pinned_images", "sandbox"}
	case slices.Contains(imageKeys, rest[0]):
		return slices.Concat([]string{pluginImages}, rest)
	case rest[0] == "containerd" && len(rest) > 1 && slices.Contains(snapshotKeys, rest[1]):
		return slices.Concat([]string{pluginImages}, rest[1:])
	default:
		return slices.Concat([]string{pluginRuntime}, rest)
	}
}

// setValues sets values of a table.
func setValues(plugins map[string]any, path []string, values map[string]any) {
	if !isSplit(path) {
		maps.Copy(section(plugins, currentPath(path)...), values)
		return
	}
	for key, value := range values {
		path := slices.Concat(path, []string{key})
		if table, isTable := value.(map[string]any); isTable {
			setValues(plugins, path, table)
			continue
		}
		path = currentPath(path)
		section(plugins, path[:len(path)-1]...)[path[len(path)-1]] = value
	}
}

// isSplit says whether the settings of a table belong to several plugins of containerd 2.
func isSplit(path []string) bool {
	return path[0] == pluginCRI && (len(path) == 1 || len(path) == 2 && path[1] == "containerd")
}
