package hosts

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/provider/hosts/hoststest"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/test/builder"
)

// bind runs a real name server.
func bind(t *testing.T) string {
	t.Helper()
	named, err := exec.LookPath("named")
	if err != nil {
		if named = "/usr/sbin/named"; !exists(named) {
			t.Skip("the package bind9 is not installed")
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"zone": "$TTL 60\n@ IN SOA ns.example.org. admin.example.org. 1 3600 600 86400 60\n@ IN NS ns.example.org.\nns IN A 127.0.0.1\n",
		"conf": fmt.Sprintf(`options { directory "%[1]s"; listen-on port %[2]s { 127.0.0.1; }; listen-on-v6 { none; }; pid-file none; session-keyfile none; recursion no; dnssec-validation no; };
controls { };
key "test." { algorithm hmac-sha256; secret "%[3]s"; };
zone "example.org" { type primary; file "zone"; allow-update { key "test."; }; };
`, dir, port, hoststest.TSIG),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(named, "-g", "-c", filepath.Join(dir, "conf"), "-p", port)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	logged, buffer := "", make([]byte, 4096)
	for !strings.Contains(logged, " running\n") {
		n, err := stderr.Read(buffer)
		if err != nil {
			t.Fatalf("named ends: %v\n%s", err, logged)
		}
		logged += string(buffer[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	return "127.0.0.1:" + port
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestDNSRecord(t *testing.T) {
	for name, serve := range map[string]func(*testing.T) string{"BIND": bind, "in this process": local} {
		t.Run(name, func(t *testing.T) {
			server := serve(t)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "dns"}, Data: map[string][]byte{
				"Server": []byte(server), "Zone": []byte("example.org"), "TSIGKeyName": []byte("test"), "TSIGSecret": []byte(hoststest.TSIG + "\n"),
			}}
			a := &dnsRecords{fake.NewClientBuilder().WithObjects(secret).Build(), anywhere}
			record := func(typ extensionsv1alpha1.DNSRecordType, name string, values ...string) *extensionsv1alpha1.DNSRecord {
				return &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}, Spec: extensionsv1alpha1.DNSRecordSpec{
					SecretRef: corev1.SecretReference{Namespace: "ns", Name: "dns"}, Name: name, RecordType: typ, Values: values, TTL: new(int64(30)),
				}}
			}
			long := strings.Repeat("x", 300) + `"\`
			for _, tc := range []struct {
				record *extensionsv1alpha1.DNSRecord
				want   []string
			}{
				{record("A", "api.example.org", "10.0.0.1", "10.0.0.2"), []string{"10.0.0.1", "10.0.0.2"}},
				{record("A", "api.example.org", "10.0.0.3"), []string{"10.0.0.3"}}, // others are replaced
				{record("A", "api.example.org", "10.0.0.3"), []string{"10.0.0.3"}},
				{record("AAAA", "api.example.org", "2001:db8::1"), []string{"2001:db8::1"}},
				{record("CNAME", "*.ingress.example.org", "lb.example.net"), []string{"lb.example.net."}},
				{record("TXT", "owner.example.org", "it's me", long), []string{`"it's me"`, `"` + long[:255] + `" "` + long[255:300] + `\"\\"`}},
			} {
				if err := a.Reconcile(t.Context(), tc.record, nil); err != nil {
					t.Fatal(err)
				}
				if zone := *tc.record.Status.Zone; zone != "example.org" {
					t.Errorf("the zone is %q", zone)
				}
				if got := resolve(t, server, tc.record); !slices.Equal(got, tc.want) {
					t.Errorf("%s %s is %q, want %q", tc.record.Spec.RecordType, tc.record.Spec.Name, got, tc.want)
				}
			}
			for range 2 {
				if err := a.Delete(t.Context(), record("A", "api.example.org", "10.0.0.3"), nil); err != nil {
					t.Fatal(err)
				}
			}
			if got := resolve(t, server, record("A", "api.example.org")); len(got) > 0 {
				t.Errorf("after the deletion, it is %q", got)
			}
			if got := resolve(t, server, record("AAAA", "api.example.org")); len(got) != 1 {
				t.Errorf("the record of another type is deleted, too: %q", got)
			}

			secret.Data["TSIGSecret"] = []byte(base64.StdEncoding.EncodeToString([]byte("another")))
			other := &dnsRecords{fake.NewClientBuilder().WithObjects(secret).Build(), anywhere}
			if codes := errorcode.Of(other.Reconcile(t.Context(), record("A", "b.example.org", "10.0.0.1"), nil)); !slices.Equal(codes, []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthorized}) {
				t.Errorf("with another key, the codes are %v", codes)
			}
			for name, wrong := range map[string]*extensionsv1alpha1.DNSRecord{
				"another zone": record("A", "example.net", "10.0.0.1"), "IPv6": record("A", "a.example.org", "::1"), "IPv4": record("AAAA", "a.example.org", "10.0.0.1"),
				"two names": record("CNAME", "a.example.org", "a", "b"),
			} {
				if codes := errorcode.Of(a.Reconcile(t.Context(), wrong, nil)); !slices.Equal(codes, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) {
					t.Errorf("%s: the codes are %v", name, codes)
				}
			}
		})
	}
}

func local(t *testing.T) string { return hoststest.NameServer(t, "127.0.0.1") }
func anywhere(...string) func(string) string {
	return func(string) string { return "" }
}

func TestDNSRecordOfHostileTenant(t *testing.T) {
	server := local(t)
	for name, tc := range map[string]struct {
		key, value, want string
	}{
		"the pod itself":       {"Server", server, "update zone example.org.: the name server does not answer"},
		"a name for it":        {"Server", strings.Replace(server, "127.0.0.1", "localhost", 1), "update zone example.org.: the name server does not answer"},
		"the metadata":         {"Server", "169.254.169.254", "update zone example.org.: the name server does not answer"},
		"a zone with more":     {"Zone", "example.org\n", ""}, // it is trimmed
		"a zone with spaces":   {"Zone", "my example.org", `Secret "dns": key Zone: must consist of letters, digits, '.', '_' and '-'`},
		"a key with an escape": {"TSIGKeyName", `te\000st`, `Secret "dns": key TSIGKeyName: must consist of letters, digits, '.', '_' and '-'`},
		"no base64":            {"TSIGSecret", "%", `Secret "dns": key TSIGSecret: must be base64`},
		"another algorithm":    {"TSIGSecretAlgorithm", "rot13", "update zone example.org.: key TSIGSecretAlgorithm: the algorithm is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "dns"}, Data: map[string][]byte{
				"Server": []byte(server), "Zone": []byte("example.org"), "TSIGKeyName": []byte("test"), "TSIGSecret": []byte(hoststest.TSIG),
			}}
			secret.Data[tc.key] = []byte(tc.value)
			a := &dnsRecords{fake.NewClientBuilder().WithObjects(secret).Build(), anywhere}
			if tc.key == "Server" {
				a.blocked = destination.Outside
			}
			err := a.Reconcile(t.Context(), &extensionsv1alpha1.DNSRecord{Spec: extensionsv1alpha1.DNSRecordSpec{
				SecretRef: corev1.SecretReference{Namespace: "ns", Name: "dns"}, Name: "a.example.org", RecordType: "A", Values: []string{"10.0.0.1"},
			}}, nil)
			if got := fmt.Sprint(err); !strings.HasPrefix(got, tc.want) || (err == nil) != (tc.want == "") || strings.Contains(got, "127.0.0.1") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestNameServersInTheSeed(t *testing.T) {
	seed := builder.Seed("s", func(s *corev1beta1.Seed) {
		s.Spec.Networks = corev1beta1.SeedNetworks{Pods: "10.96.0.0/16", Services: "10.97.0.0/16", Nodes: new("10.98.0.0/16"), BlockCIDRs: []string{"192.0.2.0/24"}}
	})
	for name, tc := range map[string]struct {
		cluster *extension.Cluster
		blocked []string
		allowed []string
	}{
		"of a shoot": {
			cluster: &extension.Cluster{Seed: seed}, allowed: []string{"10.0.0.1", "2001:db8::1", "10.98.1.2"},
			blocked: []string{"10.96.1.2", "::ffff:10.96.1.2", "10.97.1.2", "192.0.2.1", "127.0.0.1", "169.254.169.254"},
		},
		"of a seed": {allowed: []string{"10.96.1.2", "192.0.2.1"}, blocked: []string{"127.0.0.1", "fe80::1%eth0", "fd00:ec2::254"}},
	} {
		t.Run(name, func(t *testing.T) {
			blocked := destination.Outside(networksOf(tc.cluster)...)
			for _, address := range tc.blocked {
				if blocked(address) == "" {
					t.Errorf("%s is allowed", address)
				}
			}
			for _, address := range tc.allowed {
				if reason := blocked(address); reason != "" {
					t.Errorf("%s %s", address, reason)
				}
			}
		})
	}
}

// resolve returns the values of a record.
func resolve(t *testing.T, server string, record *extensionsv1alpha1.DNSRecord) []string {
	t.Helper()
	typ := dns.StringToType[string(record.Spec.RecordType)]
	response, _, err := (&dns.Client{Net: "tcp"}).Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(record.Spec.Name), typ), server)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, rr := range response.Answer {
		if rr.Header().Ttl != 30 {
			t.Errorf("the TTL is %d", rr.Header().Ttl)
		}
		values = append(values, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(values)
	return values
}
