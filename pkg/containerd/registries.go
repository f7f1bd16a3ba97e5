// Package containerd renders files that the containerd of a node reads.
package containerd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// CertsDir is where containerd reads, with each pull, how registries are reached.
const CertsDir = "/etc/containerd/certs.d"

// HostsPath is the file in which containerd finds the hosts of a registry, named as in image references.
func HostsPath(upstream string) string { return CertsDir + "/" + upstream + "/hosts.toml" }

// HostsFile renders the hosts of a registry. containerd tries them in the order of the file, which a TOML encoder would not keep.
func HostsFile(registry extensionsv1alpha1.RegistryConfig) []byte {
	var out strings.Builder
	out.WriteString("# Written by Gardener.\n")
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

// quote returns a string in quotes. Those of JSON are valid in TOML.
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
