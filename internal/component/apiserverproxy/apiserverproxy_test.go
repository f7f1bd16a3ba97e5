package apiserverproxy

import (
	"net/netip"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/tunnel"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Address: AdvertiseAddress(systemcomponent.Networks{}),
		Image:   "registry.example/gardener:v1", Server: "api.first.dev.internal.example.com:443", ServerName: "tunnel.first.dev.internal.example.com",
		Certificate: []byte("certificate"), Key: []byte("key"), CABundle: []byte("CA bundle"),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
	for _, object := range objects {
		if daemonSet, ok := object.(*appsv1.DaemonSet); ok {
			if err := tunnel.NewAPIServerProxyCommand().ParseFlags(daemonSet.Spec.Template.Spec.Containers[0].Args[1:]); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAdvertiseAddress(t *testing.T) {
	four, six := netip.MustParsePrefix("100.64.0.0/13"), netip.MustParsePrefix("2001:db8::/112")
	for name, tc := range map[string]struct {
		services []netip.Prefix
		want     string
	}{
		"IPv4": {[]netip.Prefix{four}, "240.0.0.1"}, "IPv4 first": {[]netip.Prefix{four, six}, "240.0.0.1"},
		"IPv6": {[]netip.Prefix{six}, "fd8f:6d53:b97a:1::1"}, "IPv6 first": {[]netip.Prefix{six, four}, "fd8f:6d53:b97a:1::1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AdvertiseAddress(systemcomponent.Networks{Services: tc.services}); got.String() != tc.want {
				t.Errorf("AdvertiseAddress() = %s, want %s", got, tc.want)
			}
		})
	}
}
