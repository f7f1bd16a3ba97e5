package operatingsystemconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestRenderContainerd(t *testing.T) {
	for name, tc := range map[string]struct {
		base    string
		config  *extensionsv1alpha1.ContainerdConfig
		systemd bool
		want    string
	}{
		"an empty base": {
			base: "version = 3\n", config: &extensionsv1alpha1.ContainerdConfig{SandboxImage: "pause"}, systemd: true,
			want: `# Written by gardener-node-agent. What is in conf.d wins.
imports = ["/etc/containerd/conf.d/*.toml"]
version = 3

[plugins]
[plugins."io.containerd.cri.v1.images"]
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "pause"
[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
[plugins."io.containerd.cri.v1.runtime".containerd]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = true
`,
		},
		"additions, removals, and settings of the machine image": {
			base: "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\noom_score = -999\n[plugins.a.b]\nc = 1\n[plugins.a.d]\ne = 'f'\n",
			config: &extensionsv1alpha1.ContainerdConfig{Plugins: []extensionsv1alpha1.PluginConfig{
				{Path: []string{"a", "b"}, Op: new(extensionsv1alpha1.RemovePluginPathOperation)},
				{Path: []string{"a", "d"}, Values: &apiextensionsv1.JSON{Raw: []byte(`{"g":7,"h":[true]}`)}},
			}},
			want: `# Written by gardener-node-agent. What is in conf.d wins.
imports = ["/etc/containerd/conf.d/*.toml"]
oom_score = -999
version = 3

[plugins]
[plugins.a]
[plugins.a.d]
e = "f"
g = 7
h = [true]
[plugins."io.containerd.cri.v1.images"]
[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
[plugins."io.containerd.cri.v1.runtime".containerd]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := renderContainerd([]byte(tc.base), tc.config, tc.systemd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("renderContainerd() (-want +got):\n%s", diff)
			}
		})
	}
	for name, change := range map[string]extensionsv1alpha1.PluginConfig{
		"no path": {}, "no table": {Path: []string{"a"}, Values: &apiextensionsv1.JSON{Raw: []byte(`[1]`)}},
	} {
		if _, err := renderContainerd(nil, &extensionsv1alpha1.ContainerdConfig{Plugins: []extensionsv1alpha1.PluginConfig{change}}, false); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := renderContainerd([]byte("="), nil, false); err == nil {
		t.Error("a base that is no TOML was accepted")
	}
}
