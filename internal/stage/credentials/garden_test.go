package credentials

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/pkg/secrets"
)

// garden is a garden whose credentials are rotated.
type garden struct {
	client client.Client
	clock  *clocktesting.FakePassiveClock
}

func newGarden() *garden {
	return &garden{client: fake.NewClientBuilder().Build(), clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}
}

// reconcile generates the credentials as a reconciliation of the Garden does, and deletes those that it no longer uses.
func (g *garden) reconcile(t *testing.T, rotation *operatorv1alpha1.CredentialsRotation) Generated {
	t.Helper()
	set := New(Values{
		Of: instance.VirtualGarden, SeedAPI: g.client, Namespace: "garden", Clock: g.clock, HostNames: []string{"api.example.com", "gardener.example.com"},
		Rotation: RotationOfGarden(&operatorv1alpha1.Credentials{Rotation: rotation}), DiscoveryHostName: "discovery.ingress.example.com",
		Servers: []Server{
			{Name: "vpa-webhook-server", CA: operatorv1alpha1.SecretNameCARuntime, Hosts: []string{"vpa-webhook.garden.svc"}},
			{Name: "gardener-dashboard", CA: operatorv1alpha1.SecretNameCAGardener, Hosts: []string{"dashboard.ingress.example.com"}},
		},
	})
	if _, err := set.OfRuntime(); err == nil {
		t.Error("credentials of the runtime cluster are read before they are generated")
	}
	for _, step := range []func(context.Context) error{set.Open, set.Runtime, set.Etcd, set.Rest, set.Cleanup} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := set.OfRuntime(); err != nil {
		t.Error(err)
	}
	all, err := set.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// count returns how many Secrets there are of each credential.
func (g *garden) count(t *testing.T) map[string]int {
	t.Helper()
	list := &corev1.SecretList{}
	if err := g.client.List(t.Context(), list, client.InNamespace("garden"), client.MatchingLabels{
		"managed-by": "secrets-manager", "manager-identity": "gardener-operator",
	}); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, secret := range list.Items {
		if name := secret.Labels["name"]; !strings.HasSuffix(name, "-bundle") {
			count[name]++
		}
	}
	return count
}

func certificateIn(t *testing.T, set Generated, name, key string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(set.Current(name).Data[key])
	if block == nil {
		t.Fatalf("%q has no certificate", name)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// Each server has a certificate of the CA that its clients trust, for the names that they use.
func TestServersOfGarden(t *testing.T) {
	const of, namespace = instance.VirtualGarden, "garden"
	set := newGarden().reconcile(t, nil)
	for name, tc := range map[string]struct {
		ca    string
		hosts []string
	}{
		KubeAPIServer:          {"ca", append(kubeapiserver.ServerNames(of, namespace), "api.example.com", "gardener.example.com")},
		KubeControllerManager:  {"ca", kubecontrollermanager.ServerNames(of, namespace)},
		ResourceManager:        {"ca-garden-runtime", resourcemanager.ServerNames(of, namespace)},
		RuntimeResourceManager: {"ca-garden-runtime", resourcemanager.ServerNames(instance.Shoot, namespace)},
		EtcdServer:             {"ca-etcd", []string{etcd.ServiceName(of, etcd.Main), etcd.ServiceName(of, etcd.Events) + ".garden.svc", "virtual-garden-etcd-main-local"}},
		EtcdPeerServer:         {"ca-etcd-peer", []string{"virtual-garden-etcd-main-0.virtual-garden-etcd-main-peer.garden.svc", "virtual-garden-etcd-events-2.virtual-garden-etcd-events-peer.garden.svc"}},
		GardenerAPIServer:      {"ca-gardener", []string{"gardener-apiserver.garden.svc", "gardener-apiserver.kube-system.svc"}},
		AdmissionController:    {"ca-gardener", gardeneradmissioncontroller.DNSNames(namespace)},
		DiscoveryServer:        {"ca-gardener", []string{"discovery.ingress.example.com"}},
		"vpa-webhook-server":   {"ca-garden-runtime", []string{"vpa-webhook.garden.svc"}},
		"gardener-dashboard":   {"ca-gardener", []string{"dashboard.ingress.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			cert := certificateIn(t, set, name, secrets.DataKeyCertificate)
			if err := cert.CheckSignatureFrom(certificateIn(t, set, tc.ca, secrets.DataKeyCertificateCA)); err != nil {
				t.Errorf("the certificate is not of CA %q: %v", tc.ca, err)
			}
			for _, host := range tc.hosts {
				if err := cert.VerifyHostname(host); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// While a rotation is prepared, there are the old and the new credentials; when it is completed, only the new ones. The CA of components of Gardener
// is trusted for one run more.
func TestPhasesOfGarden(t *testing.T) {
	g := newGarden()
	first := g.reconcile(t, nil)
	cas := []string{"ca", "ca-client", "ca-front-proxy", "ca-etcd", "ca-etcd-peer", "ca-gardener"}
	keys := []string{
		"service-account-key", "kube-apiserver-etcd-encryption-key", "gardener-apiserver-etcd-encryption-key", "gardener-apiserver-workload-identity-signing-key",
	}
	runtime := first.Name("ca-garden-runtime")
	g.clock.SetTime(g.clock.Now().Add(time.Hour))
	started := new(metav1.NewTime(g.clock.Now()))
	for _, tc := range []struct {
		phase corev1beta1.CredentialsRotationPhase
		want  int
	}{
		{corev1beta1.RotationPreparing, 2}, {corev1beta1.RotationPrepared, 2}, {corev1beta1.RotationCompleting, 1}, {corev1beta1.RotationCompleted, 1},
	} {
		set := g.reconcile(t, &operatorv1alpha1.CredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{Phase: tc.phase, LastInitiationTime: started},
			ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{Phase: tc.phase, LastInitiationTime: started},
			ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{Phase: tc.phase, LastInitiationTime: started},
			WorkloadIdentityKey:    &operatorv1alpha1.WorkloadIdentityKeyRotation{Phase: tc.phase, LastInitiationTime: started},
			Observability:          &corev1beta1.ObservabilityRotation{LastInitiationTime: started},
		})
		want, got := map[string]int{"ca-garden-runtime": 1, "observability-ingress": 1}, g.count(t)
		for _, name := range slices.Concat(cas, keys) {
			want[name] = tc.want
			if name == "ca-gardener" && tc.phase == corev1beta1.RotationCompleting {
				want[name] = 2
			}
			if set.Name(name) == first.Name(name) {
				t.Errorf("%s: %s is not new", tc.phase, name)
			}
			if old := set.Old(name); (old != nil) != (want[name] == 2) || old != nil && old.Name != first.Name(name) {
				t.Errorf("%s: %s keeps its old one: %t", tc.phase, name, old != nil)
			}
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				delete(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Secrets (-want +got):\n%s", tc.phase, diff)
		}
		if set.Name("ca-garden-runtime") != runtime {
			t.Errorf("%s: the CA for the runtime cluster is rotated by an operation", tc.phase)
		}
		if set.Name("observability-ingress") == first.Name("observability-ingress") {
			t.Errorf("%s: the password is not new", tc.phase)
		}
	}
}

// In each run of a rotation, components trust the certificates of those that are not deployed yet, and are trusted by them: they are deployed one after
// the other, in any order.
func TestStepsOfCAForGardener(t *testing.T) {
	g := newGarden()
	runs := []Generated{g.reconcile(t, nil)}
	servers := []string{GardenerAPIServer, AdmissionController, DiscoveryServer, "gardener-dashboard"}
	g.clock.SetTime(g.clock.Now().Add(time.Hour))
	started := new(metav1.NewTime(g.clock.Now()))
	const preparing, prepared, completing, completed = corev1beta1.RotationPreparing, corev1beta1.RotationPrepared, corev1beta1.RotationCompleting, corev1beta1.RotationCompleted
	for _, tc := range []struct {
		phase corev1beta1.CredentialsRotationPhase
		// newClient and newServers are whether the new CA has signed, trusted is how many are.
		newClient, newServers bool
		trusted               int
	}{
		{phase: preparing, trusted: 2},
		{phase: prepared, newClient: true, trusted: 2},
		{phase: completing, newClient: true, newServers: true, trusted: 2},
		{phase: completed, newClient: true, newServers: true, trusted: 1},
	} {
		set := g.reconcile(t, &operatorv1alpha1.CredentialsRotation{CertificateAuthorities: &corev1beta1.CARotation{Phase: tc.phase, LastInitiationTime: started}})
		if set.Name("ca-gardener") == runs[0].Name("ca-gardener") {
			t.Fatalf("%s: the CA is not new", tc.phase)
		}
		current := certificateIn(t, set, "ca-gardener", secrets.DataKeyCertificateCA)
		former := runs[len(runs)-1:]
		if tc.phase == completing { // there need not be a run in phase Prepared
			former = runs[len(runs)-2:]
		}
		for _, name := range append(servers, AdmissionControllerClient) {
			want := tc.newServers
			if name == AdmissionControllerClient {
				want = tc.newClient
			}
			if got := certificateIn(t, set, name, secrets.DataKeyCertificate).CheckSignatureFrom(current) == nil; got != want {
				t.Errorf("%s: the new CA has signed %s: %t, want %t", tc.phase, name, got, want)
			}
			for _, run := range former {
				// Pods of the run before trust what this run deploys, and the other way round.
				for bundle, pair := range map[string][2]Generated{"former": {run, set}, "current": {set, run}} {
					pool := x509.NewCertPool()
					pool.AppendCertsFromPEM(pair[0].Bundle("ca-gardener"))
					if _, err := certificateIn(t, pair[1], name, secrets.DataKeyCertificate).Verify(x509.VerifyOptions{
						Roots: pool, CurrentTime: g.clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
					}); err != nil {
						t.Errorf("%s: the %s bundle does not have the CA of %s: %v", tc.phase, bundle, name, err)
					}
				}
			}
		}
		if trusted := strings.Count(string(set.Bundle("ca-gardener")), "BEGIN CERTIFICATE"); trusted != tc.trusted {
			t.Errorf("%s: %d CAs are trusted, want %d", tc.phase, trusted, tc.trusted)
		}
		runs = append(runs, set)
	}
}

// The CA for the runtime cluster is renewed by itself. The old one is trusted for a day, and no other CA is ever renewed.
func TestRuntimeCAIsRenewed(t *testing.T) {
	g := newGarden()
	first := g.reconcile(t, nil)
	for _, tc := range []struct {
		after   time.Duration
		renewed bool
		trusted int
	}{
		{after: 10 * 24 * time.Hour, trusted: 1},
		{after: 25 * 24 * time.Hour, renewed: true, trusted: 2},
		{after: 26*24*time.Hour + time.Minute, renewed: true, trusted: 1},
	} {
		g.clock.SetTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(tc.after))
		set := g.reconcile(t, nil)
		if renewed := set.Name("ca-garden-runtime") != first.Name("ca-garden-runtime"); renewed != tc.renewed {
			t.Errorf("after %s: renewed is %t", tc.after, renewed)
		}
		if trusted := strings.Count(string(set.Bundle("ca-garden-runtime")), "BEGIN CERTIFICATE"); trusted != tc.trusted {
			t.Errorf("after %s: %d certificates are trusted, want %d", tc.after, trusted, tc.trusted)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(set.Bundle("ca-garden-runtime"))
		for _, name := range []string{ResourceManager, RuntimeResourceManager} {
			if _, err := certificateIn(t, set, name, secrets.DataKeyCertificate).Verify(x509.VerifyOptions{Roots: pool, CurrentTime: g.clock.Now()}); err != nil {
				t.Errorf("after %s: %s: %v", tc.after, name, err)
			}
		}
		if set.Name("ca") != first.Name("ca") {
			t.Errorf("after %s: another CA is renewed by itself", tc.after)
		}
	}
}
