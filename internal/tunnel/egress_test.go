package tunnel

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/test/env"
)

// TestAPIServerReachesNode has a real kube-apiserver talk to a kubelet through the tunnel.
func TestAPIServerReachesNode(t *testing.T) {
	ip := hostAddress(t)
	s := start(t, nil)
	_, stop := s.run(NewAgent(AgentValues{
		LinksValues: LinksValues{Address: s.tunnel, TLS: s.ca.client(t, "agent"), ID: "agent-0", Metrics: newMetrics(t), Clock: clock.RealClock{}},
		// The test environment has an aggregated API server on this machine.
		Networks: []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen()), netip.MustParsePrefix("127.0.0.0/8")},
	}))
	listener, err := net.Listen("tcp", netip.AddrPortFrom(ip, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "the kubelet got ", r.URL.Path)
	}))
	_ = kubelet.Listener.Close()
	kubelet.Listener = listener
	kubelet.StartTLS()
	defer kubelet.Close()

	dir := t.TempDir()
	pair := s.ca.issue(t, "kube-apiserver")
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: https://%[1]s
        tlsConfig: {caBundle: %[2]s/ca.crt, clientCert: %[2]s/tls.crt, clientKey: %[2]s/tls.key}
`, s.proxy, dir)
	for file, content := range map[string][]byte{
		"ca.crt":      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.ca.cert.Raw}),
		"tls.crt":     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		"tls.key":     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"egress.yaml": []byte(config),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := env.Start(t, env.KubeAPIServerFlags("--egress-selector-config-file="+filepath.Join(dir, "egress.yaml")))
	c, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	node, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip.String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(listener.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert,gosec // a port
	if _, err := c.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	ask := func() (string, error) {
		answer, err := c.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/node/proxy/hello").MaxRetries(0).DoRaw(t.Context())
		return string(answer), err
	}
	if answer, err := ask(); err != nil || answer != "the kubelet got /hello" {
		t.Errorf("with an agent the response is %q, %v", answer, err)
	}
	stop()
	// A direct connection would be possible, but must not be used.
	if answer, err := ask(); err == nil {
		t.Errorf("without an agent the response is %q", answer)
	}
}

// hostAddress returns an address of this machine, as API servers refuse to talk to loopback addresses of nodes.
func hostAddress(t *testing.T) netip.Addr {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		if prefix, err := netip.ParsePrefix(addr.String()); err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast() {
			return prefix.Addr()
		}
	}
	t.Skip("this machine has only loopback addresses")
	return netip.Addr{}
}
