package operatingsystemconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

type (
	unit = extensionsv1alpha1.Unit
	file = extensionsv1alpha1.File
)

func TestMerge(t *testing.T) {
	data := func(s string) extensionsv1alpha1.FileContent {
		return extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: s}}
	}
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	osc.Spec.Units = []unit{
		{Name: "a.service", Content: ptr.To("a"), Enable: ptr.To(true), FilePaths: []string{"/a"}, DropIns: []extensionsv1alpha1.DropIn{{Name: "1.conf", Content: "1"}}},
		{Name: "b.service"},
	}
	osc.Status.ExtensionUnits = []unit{
		{Name: "a.service", Enable: ptr.To(false), FilePaths: []string{"/x"}, DropIns: []extensionsv1alpha1.DropIn{{Name: "1.conf", Content: "one"}, {Name: "2.conf", Content: "2"}}},
		{Name: "c.service"},
	}
	osc.Spec.Files = []file{{Path: "/a", Content: data("a")}, {Path: "/b", Content: data("b")}, {Path: "/n", HostName: ptr.To("other")}, {Path: "/m", HostName: ptr.To("me")}}
	osc.Status.ExtensionFiles = []file{{Path: "/a", Content: data("A")}}
	units, files := merge(osc, "me")
	if diff := cmp.Diff([]unit{
		{Name: "a.service", Content: ptr.To("a"), Enable: ptr.To(false), FilePaths: []string{"/a", "/x"}, DropIns: []extensionsv1alpha1.DropIn{{Name: "1.conf", Content: "one"}, {Name: "2.conf", Content: "2"}}},
		{Name: "b.service"},
		{Name: "c.service"},
	}, units); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]file{{Path: "/b", Content: data("b")}, {Path: "/m", HostName: ptr.To("me")}, {Path: "/a", Content: data("A")}}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if len(osc.Spec.Units[0].DropIns) != 1 {
		t.Error("the configuration itself was changed")
	}
}

func TestWaitFor(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		first      bool
		annotation string
		seen       time.Time
		want       time.Duration
	}{
		"a new machine does not wait":             {first: true, annotation: "1m", seen: now},
		"a node waits as long as it is told":      {annotation: "1m", seen: now, want: time.Minute},
		"from when it saw the change":             {annotation: "1m", seen: now.Add(-20 * time.Second), want: 40 * time.Second},
		"and not longer":                          {annotation: "1m", seen: now.Add(-2 * time.Minute)},
		"nobody told":                             {seen: now},
		"somebody told what cannot be understood": {annotation: "soon", seen: now},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waitFor(tc.first, tc.annotation, tc.seen, now); got != tc.want {
				t.Errorf("waitFor() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestConfigureContainerd(t *testing.T) {
	for name, tc := range map[string]struct {
		base    string
		config  *extensionsv1alpha1.ContainerdConfig
		systemd bool
		want    string
	}{
		"nothing there": {
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
		"additions, removals, and what the image brings": {
			base: "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\noom_score = -999\n[plugins.a.b]\nc = 1\n[plugins.a.d]\ne = 'f'\n",
			config: &extensionsv1alpha1.ContainerdConfig{Plugins: []extensionsv1alpha1.PluginConfig{
				{Path: []string{"a", "b"}, Op: ptr.To(extensionsv1alpha1.RemovePluginPathOperation)},
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
			got, err := configureContainerd([]byte(tc.base), tc.config, tc.systemd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("configureContainerd() (-want +got):\n%s", diff)
			}
		})
	}
	for name, change := range map[string]extensionsv1alpha1.PluginConfig{
		"no path": {}, "no table": {Path: []string{"a"}, Values: &apiextensionsv1.JSON{Raw: []byte(`[1]`)}},
	} {
		if _, err := configureContainerd(nil, &extensionsv1alpha1.ContainerdConfig{Plugins: []extensionsv1alpha1.PluginConfig{change}}, false); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := configureContainerd([]byte("="), nil, false); err == nil {
		t.Error("a base that is no TOML was accepted")
	}
}

func TestHosts(t *testing.T) {
	got := string(hosts(extensionsv1alpha1.RegistryConfig{
		Upstream: "docker.io", Server: ptr.To("https://registry-1.docker.io"), Hosts: []extensionsv1alpha1.RegistryHost{
			{URL: "https://b.example.com", CACerts: []string{"/ca.crt"}},
			{URL: "http://a.example.com/v2/docker.io", OverridePath: ptr.To(true), Capabilities: []extensionsv1alpha1.RegistryCapability{extensionsv1alpha1.PullCapability}},
		},
	}))
	want := `# Written by gardener-node-agent.
server = "https://registry-1.docker.io"

[host."https://b.example.com"]
capabilities = ["pull", "resolve"]
ca = ["/ca.crt"]

[host."http://a.example.com/v2/docker.io"]
capabilities = ["pull"]
override_path = true
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hosts() (-want +got):\n%s", diff)
	}
}
