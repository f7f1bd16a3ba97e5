package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/controllermanager/certificatesigningrequest"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
	"gardener.cloud/gardener/test/env"
)

// A bootstrap token is for one gardenlet. It must not give access to the objects of another seed, or of a self-hosted shoot.
func TestBootstrapTokenForAnother(t *testing.T) {
	g := start(t)
	if err := kube.Apply(t.Context(), g.c, "test", gardenrbac.Objects()...); err != nil {
		t.Fatal(err)
	}
	env.EditStatus(t, g.c, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}, func(s *corev1beta1.Seed) {
		s.Status.ClientCertificateExpirationTimestamp = new(metav1.Now())
		s.Status.ClientCertificateExpirationTimestamp.Time = s.Status.ClientCertificateExpirationTimestamp.AddDate(0, 1, 0)
	})
	for id, description := range map[string]string{"0ther5": bootstraptoken.ForSeed("other"), "operat": "for a new seed", "victim": bootstraptoken.ForSeed(seedName)} {
		g.create(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
			Type:       corev1.SecretTypeBootstrapToken,
			StringData: map[string]string{"description": description, "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"},
		})
	}
	g.approve(t)
	const seeds, shoots = "gardener.cloud:system:seeds", "gardener.cloud:system:shoots"
	for _, tc := range []struct {
		name, token, user, group string
		approved                 bool
	}{
		// The first, as what exists when the controller starts comes last.
		{name: "token-of-the-seed", token: "victim", user: "gardener.cloud:system:seed:" + seedName, group: seeds, approved: true},
		{name: "token-of-another-seed", token: "0ther5", user: "gardener.cloud:system:seed:" + seedName, group: seeds},
		{name: "token-of-an-operator-for-a-working-seed", token: "operat", user: "gardener.cloud:system:seed:" + seedName, group: seeds},
		{name: "token-that-does-not-exist", token: "deleted", user: "gardener.cloud:system:seed:" + seedName, group: seeds},
		{name: "token-of-a-seed-for-a-shoot", token: "0ther5", user: "gardener.cloud:system:shoot:garden-prod:own", group: shoots},
		{name: "token-of-an-operator-for-a-shoot", token: "operat", user: "gardener.cloud:system:shoot:garden-prod:own", group: shoots},
		{name: "token-of-an-operator-for-a-new-seed", token: "operat", user: "gardener.cloud:system:seed:new", group: seeds, approved: true},
	} {
		g.requestCertificate(t, tc.name, tc.token, tc.user, tc.group)
		if !tc.approved {
			// The controller works on one request after the other, so this one is decided when a later one is approved.
			g.requestCertificate(t, tc.name+"-after", "victim", "gardener.cloud:system:seed:"+seedName, seeds)
			g.awaitApproved(t, tc.name+"-after")
			csr := &certificatesv1.CertificateSigningRequest{}
			if err := g.c.Get(t.Context(), client.ObjectKey{Name: tc.name}, csr); err != nil {
				t.Fatal(err)
			}
			if len(csr.Status.Conditions) > 0 {
				t.Errorf("%s: the certificate of %s is %s", tc.name, tc.user, csr.Status.Conditions[0].Type)
			}
			continue
		}
		g.awaitApproved(t, tc.name)
	}
}

func (g *garden) awaitApproved(t *testing.T, name string) {
	t.Helper()
	env.Await(t, g.c, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(csr *certificatesv1.CertificateSigningRequest) error {
		if len(csr.Status.Conditions) == 0 {
			return errors.New("not approved")
		}
		return nil
	})
}

// approve runs the controller that approves certificates until the test ends.
func (g *garden) approve(t *testing.T) {
	t.Helper()
	mgr, err := manager.New(g.Config, manager.Options{
		Scheme: g.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err == nil {
		err = certificatesigningrequest.Add(mgr, certificatesigningrequest.Values{ConcurrentSyncs: 1, Clock: clock.RealClock{}})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// requestCertificate requests the client certificate of a user with a bootstrap token.
func (g *garden) requestCertificate(t *testing.T, name, token, user, group string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{group}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	as := rest.CopyConfig(g.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:bootstrap:" + token, Groups: []string{"system:bootstrappers"}}
	c, err := client.New(as, client.Options{Scheme: g.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}}); err != nil {
		t.Fatal(err)
	}
}
