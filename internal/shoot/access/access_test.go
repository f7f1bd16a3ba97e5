package access

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/secrets"
)

// While CAs are rotated, the certificate is one that all pods of the kube-apiserver trust, and theirs are trusted.
func TestKubeconfig(t *testing.T) {
	const namespace = "shoot--a--b"
	first := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	second := first.Add(time.Hour)
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	values := Values{SeedAPI: seed, Namespace: namespace, Host: "kube-apiserver." + namespace + ".svc", Now: second}
	if _, err := Kubeconfig(t.Context(), values); err == nil {
		t.Error("a kubeconfig is issued without CAs")
	}

	cas := map[string][]byte{}
	for when, at := range map[string]time.Time{"old": first, "new": second} {
		manager, err := secrets.New(t.Context(), secrets.Values{
			Client: seed, Namespace: namespace, Identity: "gardenlet", Rotations: map[string]time.Time{"ca": at, "ca-client": at},
			Clock: clocktesting.NewFakePassiveClock(at),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ca", "ca-client"} {
			secret, err := manager.Generate(t.Context(), &secrets.CertificateAuthority{Name: name, CommonName: name + "-" + when})
			if err != nil {
				t.Fatal(err)
			}
			cas[name+"-"+when] = secret.Data[secrets.DataKeyCertificateCA]
		}
	}

	for phase, want := range map[corev1beta1.CredentialsRotationPhase]string{
		"": "ca-client-new", corev1beta1.RotationPreparing: "ca-client-old", corev1beta1.RotationPreparingWithoutWorkersRollout: "ca-client-old",
		corev1beta1.RotationWaitingForWorkersRollout: "ca-client-new", corev1beta1.RotationPrepared: "ca-client-new",
		corev1beta1.RotationCompleting: "ca-client-new", corev1beta1.RotationCompleted: "ca-client-new",
	} {
		t.Run(string(phase), func(t *testing.T) {
			values.Status = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				CertificateAuthorities: &corev1beta1.CARotation{Phase: phase},
			}}
			data, err := Kubeconfig(t.Context(), values)
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig(data)
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != "https://kube-apiserver.shoot--a--b.svc" {
				t.Errorf("the URL is %q", config.Host)
			}
			if !bytes.Contains(config.CAData, cas["ca-old"]) || !bytes.Contains(config.CAData, cas["ca-new"]) {
				t.Error("a server with a certificate of one of the CAs is not trusted")
			}
			block, _ := pem.Decode(config.CertData)
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(cas[want])
			if _, err := certificate.Verify(x509.VerifyOptions{
				Roots: roots, CurrentTime: second, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			}); err != nil {
				t.Errorf("the certificate is not one of %s: %v", want, err)
			}
			if diff := cmp.Diff([]string{"system:masters"}, certificate.Subject.Organization); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if until := certificate.NotAfter; until.After(second.Add(Validity)) {
				t.Errorf("the certificate is valid until %s", until)
			}
		})
	}
	values.Validity = 10 * time.Minute
	data, err := Kubeconfig(t.Context(), values)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(config.CertData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if want := second.Add(10 * time.Minute); !certificate.NotAfter.Equal(want) {
		t.Errorf("a certificate for ten minutes is valid until %s, not %s", certificate.NotAfter, want)
	}
}
