package landscape

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBypassProxy(t *testing.T) {
	for name, tc := range map[string]struct {
		have, want map[string]string
	}{
		"nothing set":          {want: map[string]string{"NO_PROXY": "172.30.0.0/19", "no_proxy": "172.30.0.0/19"}},
		"one of them":          {map[string]string{"no_proxy": "a,b"}, map[string]string{"NO_PROXY": "a,b,172.30.0.0/19", "no_proxy": "a,b,172.30.0.0/19"}},
		"both, and different":  {map[string]string{"NO_PROXY": "a", "no_proxy": "b"}, map[string]string{"NO_PROXY": "a,172.30.0.0/19", "no_proxy": "b,172.30.0.0/19"}},
		"it is there":          {map[string]string{"NO_PROXY": "a, 172.30.0.0/19"}, map[string]string{"NO_PROXY": "a, 172.30.0.0/19", "no_proxy": "a, 172.30.0.0/19"}},
		"no proxy for nothing": {map[string]string{"NO_PROXY": "*"}, map[string]string{"NO_PROXY": "*", "no_proxy": "*"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			maps.Copy(got, tc.have)
			getenv := func(key string) string { return tc.have[key] }
			setenv := func(key, value string) error { got[key] = value; return nil }
			if err := BypassProxy(getenv, setenv); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("BypassProxy() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProxyAdvice(t *testing.T) {
	for name, tc := range map[string]struct {
		environment map[string]string
		want        string
	}{
		"no proxy": {},
		"a proxy":  {map[string]string{"https_proxy": "http://proxy.example", "NO_PROXY": "a"}, "export NO_PROXY=a,172.30.0.0/19"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ProxyAdvice(func(key string) string { return tc.environment[key] }); got != tc.want {
				t.Errorf("ProxyAdvice() = %q, want %q", got, tc.want)
			}
		})
	}
}
