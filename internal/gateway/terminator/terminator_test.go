package terminator

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/gateway/haproxy"
	"gardener.cloud/gardener/test/ports"
)

// authority is a CA.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	ca := &authority{}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "ca"}}
	ca.certificate, ca.key = sign(t, template, nil)
	return ca
}

// sign signs a certificate, with its own key if there is no CA.
func sign(t *testing.T, template *x509.Certificate, ca *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := template, key
	if ca != nil {
		parent, signer = ca.certificate, ca.key
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func (ca *authority) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw})
}

func (ca *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	return pool
}

// issue returns a certificate and its key as PEM.
func (ca *authority) issue(t *testing.T, subject pkix.Name, usage x509.ExtKeyUsage, hosts ...string) (certificate, key []byte) {
	t.Helper()
	c, k := sign(t, &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{usage}, DNSNames: hosts}, ca)
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func (ca *authority) pair(t *testing.T, subject pkix.Name, usage x509.ExtKeyUsage, hosts ...string) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(ca.issue(t, subject, usage, hosts...))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// cluster is a shoot: its CAs, and the pods of its kube-apiserver.
type cluster struct {
	host                        string
	serverCA, clientCA, proxyCA *authority
	pods                        []*httptest.Server
}

// newCluster starts two pods.
func newCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c := &cluster{host: "api." + name + ".example.com", serverCA: newAuthority(t), clientCA: newAuthority(t), proxyCA: newAuthority(t)}
	for i := range 2 {
		pod := httptest.NewUnstartedServer(c.handler(fmt.Sprintf("%s-%d", name, i)))
		pod.EnableHTTP2 = true
		pod.TLS = &tls.Config{
			Certificates: []tls.Certificate{c.serverCA.pair(t, pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth, c.host, serverName)},
			ClientAuth:   tls.RequestClientCert, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		}
		pod.StartTLS()
		t.Cleanup(func() { pod.CloseClientConnections(); pod.Close() })
		c.pods = append(c.pods, pod)
	}
	return c
}

// seen is what a pod has received.
type seen struct {
	Pod string
	// Proxy is whether the connection has a certificate of the front-proxy CA.
	Proxy bool
	// User and Groups are those in the headers, Others all other headers by which users are named.
	User   string
	Groups []string
	Others []string
	Token  string
	Host   string
}

// handler responds as a kube-apiserver does, as far as it matters here.
func (c *cluster) handler(pod string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/watch", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, pod)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/exec", func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer conn.Close() //nolint:errcheck // the client has what it asked for
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
		if line, err := rw.ReadString('\n'); err == nil {
			fmt.Fprint(conn, r.Header.Get("X-Remote-User")+" "+line)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s := seen{Pod: pod, User: r.Header.Get("X-Remote-User"), Groups: r.Header.Values("X-Remote-Group"), Token: r.Header.Get("Authorization"), Host: r.Host}
		for name, values := range r.Header {
			lower := strings.ToLower(name)
			if strings.HasPrefix(lower, "x-remote-") && name != "X-Remote-User" && name != "X-Remote-Group" && !strings.HasPrefix(values[0], "X509SHA256=") {
				s.Others = append(s.Others, name)
			}
		}
		if presentsCertificate(r) {
			_, err := r.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.proxyCA.pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			s.Proxy = err == nil
		}
		_ = json.NewEncoder(w).Encode(s)
	})
	return mux
}

// server returns what the gateway knows of the cluster.
func (c *cluster) server(t *testing.T) Server {
	t.Helper()
	data := map[string][]byte{gateway.KeyClientCA: c.clientCA.bundle(), gateway.KeyServerCA: c.serverCA.bundle()}
	data[gateway.KeyCertificate], data[gateway.KeyPrivateKey] = c.serverCA.issue(t, pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth, c.host)
	data[gateway.KeyProxyCertificate], data[gateway.KeyProxyPrivateKey] = c.proxyCA.issue(t, pkix.Name{CommonName: "proxy"}, x509.ExtKeyUsageClientAuth)
	credentials, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	s := Server{Hosts: []string{c.host}, Credentials: credentials}
	for _, pod := range c.pods {
		s.Endpoints = append(s.Endpoints, netip.MustParseAddrPort(pod.Listener.Addr().String()))
	}
	return s
}

func (c *cluster) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.host, Name: "kube-apiserver"}
}

// user returns a client certificate.
func (c *cluster) user(t *testing.T, name string, groups ...string) *tls.Certificate {
	t.Helper()
	pair := c.clientCA.pair(t, pkix.Name{CommonName: name, Organization: groups}, x509.ExtKeyUsageClientAuth)
	return &pair
}

// start starts a Terminator for clusters, and returns its address.
func start(t *testing.T, clusters ...*cluster) (*Terminator, string) {
	t.Helper()
	terminator, err := New("", prometheus.NewRegistry(), logr.Discard(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	servers := map[types.NamespacedName]Server{}
	for _, c := range clusters {
		servers[c.key()] = c.server(t)
	}
	terminator.Set(servers)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = terminator.serve(context.Background(), listener) }()
	t.Cleanup(func() { _ = listener.Close(); <-ended })
	return terminator, listener.Addr().String()
}

// client is one of a cluster. It has one connection, like clients of Kubernetes.
type client struct {
	*http.Client
	cluster *cluster
	dials   int
}

func (c *cluster) client(t *testing.T, address string, certificate *tls.Certificate) *client {
	t.Helper()
	cl := &client{cluster: c}
	config := &tls.Config{RootCAs: c.serverCA.pool(), ServerName: c.host, MinVersion: tls.VersionTLS12}
	if certificate != nil {
		// Also if the server would not accept it, as an attacker does.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		cl.dials++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	cl.Client = &http.Client{Transport: transport, Timeout: time.Minute}
	return cl
}

// get sends a request with headers, and returns its status and what the pod has seen.
func (c *client) get(t *testing.T, header http.Header) (int, seen) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.cluster.host+"/api", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		if name == "Host" {
			r.Host = values[0]
			continue
		}
		r.Header[name] = values
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		t.Errorf("the protocol is %s", response.Proto)
	}
	var s seen
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, s
}

// The requests of one connection are spread over the pods.
func TestSpread(t *testing.T) {
	c := newCluster(t, "a")
	_, address := start(t, c)
	checkSpread(t, c, address)
}

func checkSpread(t *testing.T, c *cluster, address string) {
	t.Helper()
	client, pods := c.client(t, address, nil), map[string]int{}
	for range 20 {
		_, s := client.get(t, nil)
		pods[s.Pod]++
	}
	if diff := cmp.Diff(map[string]int{"a-0": 10, "a-1": 10}, pods); diff != "" || client.dials != 1 {
		t.Errorf("%d connections, requests by pod (-want +got):\n%s", client.dials, diff)
	}
}

// HAProxy hands connections to the Terminator, and the client sees no difference.
func TestThroughHAProxy(t *testing.T) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("there is no haproxy")
	}
	c := newCluster(t, "a")
	_, address := start(t, c)
	dir, free := t.TempDir(), ports.Free(t, 2)
	config := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(config, []byte(gateway.Configuration(dir, free[0], free[1], false)), 0o600); err != nil {
		t.Fatal(err)
	}
	table := haproxy.NewTable()
	table.AddBackend(c.host, haproxy.Backend{Service: netip.MustParseAddrPort("192.0.2.1:443"), Through: netip.MustParseAddrPort(address)})
	if err := haproxy.NewProgrammer(dir, clock.RealClock{}).Set(table); err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), binary, "-db", "-f", config) //nolint:gosec // it is the test's own
	process.Stdout, process.Stderr = t.Output(), t.Output()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	proxy := fmt.Sprintf("127.0.0.1:%d", free[0])
	end, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", proxy)
		if err == nil {
			_ = conn.Close()
			break
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal(err)
		}
	}
	checkSpread(t, c, proxy)
	if status, s := c.client(t, proxy, c.user(t, "alice")).get(t, nil); status != http.StatusOK || s.User != "alice" {
		t.Errorf("status %d, the kube-apiserver sees %+v", status, s)
	}
}

// What the kube-apiserver sees of clients: the user of a valid certificate, and nothing that clients say of themselves.
func TestUsers(t *testing.T) {
	c, other := newCluster(t, "a"), newCluster(t, "b")
	_, address := start(t, c, other)
	spoofed := http.Header{
		"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Uid": {"1"}, "X-Remote-Extra-Scopes": {"all"}, "x-remote-user": {"admin"},
	}
	token := http.Header{"Authorization": {"Bearer t"}}
	forServers := c.clientCA.pair(t, pkix.Name{CommonName: "alice"}, x509.ExtKeyUsageServerAuth)
	for name, tc := range map[string]struct {
		certificate *tls.Certificate
		header      http.Header
		refused     bool
		want        seen
	}{
		"no credentials":                  {},
		"headers without a certificate":   {header: spoofed},
		"token":                           {header: token, want: seen{Token: "Bearer t"}},
		"certificate":                     {certificate: c.user(t, "alice", "dev", "ops"), want: seen{Proxy: true, User: "alice", Groups: []string{"dev", "ops"}}},
		"headers with a certificate":      {certificate: c.user(t, "alice"), header: spoofed, want: seen{Proxy: true, User: "alice"}},
		"certificate and token":           {certificate: c.user(t, "alice"), header: token, want: seen{Proxy: true, User: "alice", Token: "Bearer t"}},
		"certificate of another cluster":  {certificate: other.user(t, "alice", "system:masters"), refused: true},
		"that with headers":               {certificate: other.user(t, "alice"), header: spoofed, refused: true},
		"that with a token":               {certificate: other.user(t, "alice"), header: token, want: seen{Token: "Bearer t"}},
		"certificate not for clients":     {certificate: &forServers, refused: true},
		"certificate without a name":      {certificate: c.user(t, ""), refused: true},
		"name that headers would change":  {certificate: c.user(t, "admin "), refused: true},
		"group that headers would change": {certificate: c.user(t, "alice", "ops", " system:masters"), refused: true},
		"Host of another cluster":         {header: http.Header{"Host": {other.host}}, want: seen{Host: other.host}},
	} {
		t.Run(name, func(t *testing.T) {
			status, got := c.client(t, address, tc.certificate).get(t, tc.header)
			if tc.refused {
				if status != http.StatusUnauthorized || got.Pod != "" {
					t.Fatalf("status %d, the kube-apiserver sees %+v", status, got)
				}
				return
			}
			if status != http.StatusOK || !strings.HasPrefix(got.Pod, "a-") {
				t.Errorf("status %d of pod %q", status, got.Pod)
			}
			if tc.want.Host == "" {
				tc.want.Host = c.host
			}
			got.Pod = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the kube-apiserver sees (-want +got):\n%s", diff)
			}
		})
	}
}

// A CA that is removed ends what its certificates may do, also on connections that are open. A pod that is gone is skipped. A cluster that is not
// served any more closes its connections.
func TestChanges(t *testing.T) {
	c := newCluster(t, "a")
	terminator, address := start(t, c)
	old := c.client(t, address, c.user(t, "alice"))
	if status, _ := old.get(t, nil); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}

	c.clientCA = newAuthority(t)
	terminator.Set(map[types.NamespacedName]Server{c.key(): c.server(t)})
	if status, _ := old.get(t, nil); status != http.StatusUnauthorized || old.dials != 1 {
		t.Errorf("status %d with a certificate of the former CA, after %d connections", status, old.dials)
	}
	current := c.client(t, address, c.user(t, "alice"))
	if status, s := current.get(t, nil); status != http.StatusOK || s.User != "alice" {
		t.Errorf("status %d with a certificate of the new CA, for %q", status, s.User)
	}

	c.pods[0].CloseClientConnections()
	c.pods[0].Close()
	for range 4 {
		if status, s := current.get(t, nil); status != http.StatusOK || s.Pod != "a-1" {
			t.Errorf("status %d of pod %q", status, s.Pod)
		}
	}

	none := c.server(t)
	none.Endpoints = nil
	terminator.Set(map[types.NamespacedName]Server{c.key(): none})
	if status, _ := current.get(t, nil); status != http.StatusServiceUnavailable {
		t.Errorf("status %d without pods", status)
	}
	terminator.Set(nil)
	if status, _ := current.get(t, nil); status != http.StatusServiceUnavailable {
		t.Errorf("status %d of a cluster that is not served", status)
	}
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: c.serverCA.pool(), ServerName: c.host, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		_ = conn.Close()
		t.Error("a connection to it was accepted")
	}
}

// Watches arrive as they are sent, and exec, port-forward and WebSockets take their connection over.
func TestLongRequests(t *testing.T) {
	c := newCluster(t, "a")
	_, address := start(t, c)
	user := c.user(t, "alice")

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.host+"/watch", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.client(t, address, user).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "a-") {
		t.Errorf("the watch has %q: %v", line, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}

	for _, protocol := range []string{"SPDY/3.1", "websocket"} {
		conn, err := (&tls.Dialer{Config: &tls.Config{
			RootCAs: c.serverCA.pool(), ServerName: c.host, Certificates: []tls.Certificate{*user}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
		}}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // it is only read
		fmt.Fprintf(conn, "GET /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Remote-User: admin\r\n\r\n", protocol)
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil) //nolint:bodyclose // the connection is closed
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != protocol {
			body, _ := io.ReadAll(response.Body)
			t.Fatalf("%s: status %d: %s", protocol, response.StatusCode, body)
		}
		fmt.Fprintln(conn, "hello")
		if line, err := reader.ReadString('\n'); err != nil || line != "alice hello\n" {
			t.Errorf("%s: response %q: %v", protocol, line, err)
		}
	}
}

func TestParse(t *testing.T) {
	if _, err := Parse(map[string][]byte{gateway.KeyCertificate: []byte("c")}); err == nil || !strings.Contains(err.Error(), `key "tls.key" is missing`) {
		t.Errorf("Parse() returns the error %v", err)
	}
}
