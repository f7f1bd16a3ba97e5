package containerd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestHostsFile(t *testing.T) {
	got := string(HostsFile(extensionsv1alpha1.RegistryConfig{
		Upstream: "docker.io", Server: new("https://registry-1.docker.io"), Hosts: []extensionsv1alpha1.RegistryHost{
			{URL: "https://b.example.com", CACerts: []string{"/ca.crt"}},
			{URL: "http://a.example.com/v2/docker.io", OverridePath: new(true), Capabilities: []extensionsv1alpha1.RegistryCapability{extensionsv1alpha1.PullCapability}},
		},
	}))
	want := `# Written by Gardener.
server = "https://registry-1.docker.io"

[host."https://b.example.com"]
capabilities = ["pull", "resolve"]
ca = ["/ca.crt"]

[host."http://a.example.com/v2/docker.io"]
capabilities = ["pull"]
override_path = true
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("HostsFile() (-want +got):\n%s", diff)
	}
}
