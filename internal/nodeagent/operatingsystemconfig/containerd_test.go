package operatingsystemconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestContainerdSettings(t *testing.T) {
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
			settings, err := containerdSettings([]byte(tc.base), tc.config, tc.systemd, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := encodeContainerd(settings)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("encodeContainerd() (-want +got):\n%s", diff)
			}
		})
	}
	for name, change := range map[string]extensionsv1alpha1.PluginConfig{
		"no path": {}, "no table": {Path: []string{"a"}, Values: &apiextensionsv1.JSON{Raw: []byte(`[1]`)}},
	} {
		if _, err := containerdSettings(nil, &extensionsv1alpha1.ContainerdConfig{Plugins: []extensionsv1alpha1.PluginConfig{change}}, false, nil); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := containerdSettings([]byte("="), nil, false, nil); err == nil {
		t.Error("a base that is no TOML was accepted")
	}
}

func TestPathsOfContainerd1(t *testing.T) {
	type table = map[string]any
	remove := new(extensionsv1alpha1.RemovePluginPathOperation)
	const images, runtime = "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
	for name, tc := range map[string]struct {
		plugins table
		path    []string
		values  string
		op      *extensionsv1alpha1.PluginPathOperation
		want    table
	}{
		"a runtime": {
			path: []string{"io.containerd.grpc.v1.cri", "containerd", "runtimes", "runsc"}, values: `{"runtime_type":"io.containerd.runsc.v1"}`,
			want: table{runtime: table{"containerd": table{"runtimes": table{"runsc": table{"runtime_type": "io.containerd.runsc.v1"}}}}},
		},
		"a runtime that is removed": {
			plugins: table{runtime: table{"containerd": table{"runtimes": table{"runsc": table{}, "crun": table{}}}}},
			path:    []string{"io.containerd.grpc.v1.cri", "containerd", "runtimes", "runsc"}, op: remove,
			want: table{runtime: table{"containerd": table{"runtimes": table{"crun": table{}}}}},
		},
		"registries": {
			path: []string{"io.containerd.grpc.v1.cri", "registry"}, values: `{"config_path":"/certs"}`,
			want: table{images: table{"registry": table{"config_path": "/certs"}}},
		},
		"registries that are removed": {
			plugins: table{images: table{"registry": table{"configs": table{"a": 1}, "config_path": "/certs"}}},
			path:    []string{"io.containerd.grpc.v1.cri", "registry", "configs"}, op: remove,
			want: table{images: table{"registry": table{"config_path": "/certs"}}},
		},
		"settings of all plugins": {
			path: []string{"io.containerd.grpc.v1.cri"},
			values: `{"sandbox_image":"pause","enable_selinux":true,"stream_server_port":"1","max_concurrent_downloads":5,` +
				`"containerd":{"snapshotter":"native","default_runtime_name":"runc"}}`,
			want: table{
				images:                      table{"pinned_images": table{"sandbox": "pause"}, "max_concurrent_downloads": int64(5), "snapshotter": "native"},
				runtime:                     table{"enable_selinux": true, "containerd": table{"default_runtime_name": "runc"}},
				"io.containerd.grpc.v1.cri": table{"stream_server_port": "1"},
			},
		},
		"the snapshotter": {
			path: []string{"io.containerd.grpc.v1.cri", "containerd"}, values: `{"snapshotter":"native"}`, want: table{images: table{"snapshotter": "native"}},
		},
		"another plugin": {
			path: []string{"io.containerd.gc.v1.scheduler"}, values: `{"deletion_threshold":5}`, want: table{"io.containerd.gc.v1.scheduler": table{"deletion_threshold": int64(5)}},
		},
		"another plugin that is removed": {
			plugins: table{"io.containerd.gc.v1.scheduler": table{}}, path: []string{"io.containerd.gc.v1.scheduler"}, op: remove, want: table{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := extensionsv1alpha1.PluginConfig{Path: tc.path, Op: tc.op}
			if tc.values != "" {
				change.Values = &apiextensionsv1.JSON{Raw: []byte(tc.values)}
			}
			plugins := tc.plugins
			if plugins == nil {
				plugins = table{}
			}
			if err := changePlugin(plugins, change); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, plugins); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}
