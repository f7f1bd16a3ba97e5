package credentials

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/secrets"
)

// rotated is a control plane whose CAs are rotated step by step.
type rotated struct {
	client client.Client
	clock  *clocktesting.FakePassiveClock
	status corev1beta1.CARotation
	// replicated is whether etcd has several members.
	replicated bool
	all        Generated
}

// enter makes the credentials of a phase, as a reconciliation does. The first phase is none.
func (r *rotated) enter(t *testing.T, phase corev1beta1.CredentialsRotationPhase) {
	t.Helper()
	r.clock.SetTime(r.clock.Now().Add(time.Hour))
	if r.status.Phase == "" && phase != "" {
		r.status.LastInitiationTime = new(metav1.NewTime(r.clock.Now()))
	}
	r.status.Phase = phase
	set := New(Values{
		SeedAPI: r.client, Namespace: "shoot--a--b", Workers: true, Replicated: r.replicated, Clock: r.clock,
		Rotation: RotationOfShoot(&corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{CertificateAuthorities: r.status.DeepCopy()}}),
	})
	if err := set.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := set.OfEtcd(); err == nil {
		t.Error("credentials of etcd are read before they are generated")
	}
	if err := set.Etcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := set.OfEtcd(); err != nil {
		t.Error(err)
	}
	if _, err := set.All(); err == nil {
		t.Error("credentials are read before they are generated")
	}
	if err := set.Rest(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.all, err = set.All(); err != nil {
		t.Fatal(err)
	}
}

// certificate returns that of a credential.
func (r *rotated) certificate(t *testing.T, name, key string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(r.all.Current(name).Data[key])
	if block == nil {
		t.Fatalf("%q has no certificate", name)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// trusted returns how many certificates of a CA are trusted.
func (r *rotated) trusted(ca string) int {
	count, rest := 0, r.all.Bundle(ca)
	for block, left := pem.Decode(rest); block != nil; block, left = pem.Decode(left) {
		count++
	}
	return count
}

// While CAs are rotated, each certificate has to be of a CA that all of its peers trust.
func TestSigners(t *testing.T) {
	r := &rotated{client: fake.NewClientBuilder().Build(), clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}
	r.enter(t, "")
	names := map[string]string{
		KubeAPIServer: constants.SecretNameCACluster, KubeAPIServerKubelet: constants.SecretNameCAKubelet,
		HTTPProxyClient: constants.SecretNameCAVPN, MetricsServer: constants.SecretNameCAMetricsServer,
	}
	first := map[string]*x509.Certificate{}
	for name, ca := range names {
		first[name] = r.certificate(t, ca, secrets.DataKeyCertificateCA)
	}
	for _, tc := range []struct {
		phase   corev1beta1.CredentialsRotationPhase
		trusted int
		// old are the credentials that the old CA has signed.
		old map[string]bool
	}{
		{phase: corev1beta1.RotationPreparing, trusted: 2, old: map[string]bool{KubeAPIServer: true, KubeAPIServerKubelet: true}},
		{phase: corev1beta1.RotationPrepared, trusted: 2, old: map[string]bool{KubeAPIServer: true, KubeAPIServerKubelet: true}},
		{phase: corev1beta1.RotationCompleting, trusted: 1},
		{phase: corev1beta1.RotationCompleted, trusted: 1},
	} {
		t.Run(string(tc.phase), func(t *testing.T) {
			r.enter(t, tc.phase)
			for name, ca := range names {
				cert := r.certificate(t, name, secrets.DataKeyCertificate)
				ofOld, ofNew := cert.CheckSignatureFrom(first[name]) == nil, cert.CheckSignatureFrom(r.certificate(t, ca, secrets.DataKeyCertificateCA)) == nil
				if ofOld != tc.old[name] || ofNew == tc.old[name] {
					t.Errorf("%s: signed by the old CA: %t, of the new one: %t", name, ofOld, ofNew)
				}
				if got := r.trusted(ca); got != tc.trusted {
					t.Errorf("%d certificates of %s are trusted, want %d", got, ca, tc.trusted)
				}
			}
		})
	}
}

// Of two members of etcd, one has the credentials of this step, and the other one those of the step before: each has to trust the other.
func TestMembersOfEtcdUnderstandEachOther(t *testing.T) {
	for _, replicated := range []bool{true, false} {
		r := &rotated{
			client: fake.NewClientBuilder().Build(), clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), replicated: replicated,
		}
		for _, ca := range []string{constants.SecretNameCAETCD, constants.SecretNameCAETCDPeer} {
			name := map[string]string{constants.SecretNameCAETCD: EtcdServer, constants.SecretNameCAETCDPeer: EtcdPeerServer}[ca]
			type member struct {
				cert  *x509.Certificate
				roots *x509.CertPool
			}
			trusts := func(m, other member) bool {
				_, err := other.cert.Verify(x509.VerifyOptions{Roots: m.roots, CurrentTime: r.clock.Now()})
				return err == nil
			}
			r.status = corev1beta1.CARotation{}
			var before *member
			for _, phase := range []corev1beta1.CredentialsRotationPhase{
				"", corev1beta1.RotationPreparing, corev1beta1.RotationPrepared, corev1beta1.RotationCompleting, corev1beta1.RotationCompleted,
			} {
				r.enter(t, phase)
				after := &member{cert: r.certificate(t, name, secrets.DataKeyCertificate), roots: x509.NewCertPool()}
				after.roots.AppendCertsFromPEM(r.all.Bundle(ca))
				if before != nil && replicated && (!trusts(*before, *after) || !trusts(*after, *before)) {
					t.Errorf("%s: in phase %q, restarted members and others reject each other", ca, phase)
				}
				if phase == corev1beta1.RotationCompleting && !replicated || phase == corev1beta1.RotationCompleted {
					if got := r.trusted(ca); got != 1 {
						t.Errorf("%s: in phase %q, %d certificates are trusted", ca, phase, got)
					}
				}
				before = after
			}
		}
	}
}

// Credentials for monitoring are replaced in place by a rotation: the old ones are not valid any more.
func TestMonitoringIsRotatedInPlace(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	seedAPI := fake.NewClientBuilder().Build()
	generate := func(status *corev1beta1.ShootCredentials, at time.Time) Generated {
		t.Helper()
		set := New(Values{SeedAPI: seedAPI, Namespace: "shoot--a--b", Monitoring: true, Rotation: RotationOfShoot(status), Clock: clocktesting.NewFakePassiveClock(at)})
		for _, step := range []func(context.Context) error{set.Open, set.Etcd, set.Rest} {
			if err := step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		all, err := set.All()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	password := func(set Generated) string {
		return string(set.Current(constants.SecretNameObservabilityIngressUsers).Data[secrets.DataKeyPassword])
	}
	first := password(generate(nil, noon))
	if again := password(generate(nil, noon.Add(time.Hour))); first == "" || again != first {
		t.Errorf("without a rotation, the password has changed")
	}
	started := metav1.NewTime(noon.Add(2 * time.Hour))
	set := generate(&corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
		Observability: &corev1beta1.ObservabilityRotation{LastInitiationTime: &started},
	}}, started.Add(time.Minute))
	if password(set) == first || set.Old(constants.SecretNameObservabilityIngressUsers) != nil {
		t.Error("after a rotation, the old password is used")
	}
}
