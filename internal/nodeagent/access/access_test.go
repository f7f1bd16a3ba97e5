package access

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

func TestRenewalTime(t *testing.T) {
	start := time.Unix(1000, 0)
	certificate := &x509.Certificate{NotBefore: start, NotAfter: start.Add(100 * time.Hour)}
	for random, want := range map[float64]time.Duration{0: 70 * time.Hour, 0.5: 80 * time.Hour, 1: 90 * time.Hour} {
		if got := renewalTime(certificate, random).Sub(start).Round(time.Second); got != want {
			t.Errorf("renewalTime(%v) is after %s, want %s", random, got, want)
		}
	}
}

func TestResult(t *testing.T) {
	for name, tc := range map[string]struct {
		condition        certificatesv1.RequestConditionType
		certificate      string
		pending, refused string
	}{
		"new":                 {pending: "not approved and signed yet"},
		"approved":            {condition: certificatesv1.CertificateApproved, pending: "not approved and signed yet"},
		"approved and signed": {condition: certificatesv1.CertificateApproved, certificate: "signed"},
		"denied":              {condition: certificatesv1.CertificateDenied, refused: `"a" is Denied (R): M`},
		"failed":              {condition: certificatesv1.CertificateFailed, refused: `"a" is Failed (R): M`},
	} {
		t.Run(name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{}
			csr.Name, csr.Status.Certificate = "a", []byte(tc.certificate)
			if tc.condition != "" {
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: tc.condition, Reason: "R", Message: "M"}}
			}
			certificate, pending, refused := result(csr)
			if string(certificate) != tc.certificate || !matches(pending, tc.pending) || !matches(refused, tc.refused) {
				t.Errorf("result() = %q, %v, %v", certificate, pending, refused)
			}
		})
	}
}

func matches(err error, want string) bool {
	if want == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), want)
}

func TestEnsureWithoutCertificateAndToken(t *testing.T) {
	v := Values{Root: rootfs.Dir(t.TempDir()), Kubeconfig: "/kubeconfig", Clock: clocktesting.NewFakeClock(time.Now())}
	if err := Ensure(t.Context(), v); err == nil || !strings.Contains(err.Error(), nodeagentconfigv1alpha1.BootstrapTokenFilePath) {
		t.Errorf("error is %v", err)
	}
}

func TestKubeletBootstrapKubeconfig(t *testing.T) {
	root := rootfs.Dir(t.TempDir())
	if err := root.Write("/ca.crt", []byte("CA"), 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := KubeletBootstrapKubeconfig("https://api.example.com", root.Path("/ca.crt"), &clientcmdapi.AuthInfo{Token: "abcdef.0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil || config.Host != "https://api.example.com" || config.BearerToken != "abcdef.0123456789abcdef" || config.CAFile != root.Path("/ca.crt") {
		t.Errorf("kubeconfig is %s (%v)", data, err)
	}
}

func TestMachineName(t *testing.T) {
	root := rootfs.Dir(t.TempDir())
	if name, err := MachineName(root, "host"); name != "host" || err != nil {
		t.Errorf("without a file the name is %q, %v", name, err)
	}
	if err := root.Write(nodeagentconfigv1alpha1.MachineNameFilePath, []byte("machine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := MachineName(root, "host"); name != "machine" || err != nil {
		t.Errorf("with a file the name is %q, %v", name, err)
	}
}
