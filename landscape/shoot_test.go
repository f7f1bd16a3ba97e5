package landscape

import (
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestByAddress(t *testing.T) {
	for name, tc := range map[string]struct{ server, address, want, wantName string }{
		"without a port":  {"https://api.a.b.example.com", "172.30.0.128", "https://172.30.0.128:443", "api.a.b.example.com"},
		"with a port":     {"https://api.a.b.example.com:8443/x", "172.30.0.128", "https://172.30.0.128:8443/x", "api.a.b.example.com"},
		"to IPv6":         {"https://api.a.b.example.com", "fd00::1", "https://[fd00::1]:443", "api.a.b.example.com"},
		"not an URL":      {":", "fd00::1", "", ""},
		"from an address": {"https://10.0.0.1:443", "172.30.0.128", "https://172.30.0.128:443", "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clientcmdapi.Cluster{Server: tc.server}
			err := byAddress(cluster, tc.address)
			if (err != nil) != (tc.want == "") {
				t.Fatalf("error is %v", err)
			}
			if err == nil && (cluster.Server != tc.want || cluster.TLSServerName != tc.wantName) {
				t.Errorf("server is %q for %q", cluster.Server, cluster.TLSServerName)
			}
		})
	}
}
