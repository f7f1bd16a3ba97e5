package secrets

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"
)

const namespace = "shoot--dev--one"

var start = time.Unix(1_800_000_000, 0).UTC()

// pass is one reconciliation: it generates a CA, a server certificate, a client certificate and a key, and cleans up.
type pass struct {
	manager                 *Manager
	ca, server, client, key *corev1.Secret
}

func newManager(t *testing.T, c client.Client, now clock.PassiveClock, rotations map[string]time.Time) *Manager {
	t.Helper()
	m, err := New(t.Context(), Values{Client: c, Namespace: namespace, Identity: "gardenlet", Clock: now, Rotations: rotations})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func generate(t *testing.T, m *Manager, config Config, options ...Option) *corev1.Secret {
	t.Helper()
	secret, err := m.Generate(t.Context(), config, options...)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func run(t *testing.T, c client.Client, now clock.PassiveClock, rotations map[string]time.Time, options ...Option) *pass {
	t.Helper()
	m := newManager(t, c, now, rotations)
	p := &pass{manager: m}
	p.ca = generate(t, m, &CertificateAuthority{Name: "ca", CommonName: "kubernetes"}, append(options, KeepOld())...)
	p.server = generate(t, m, &Certificate{
		Name: "kube-apiserver", CommonName: "kube-apiserver", Usage: ServerCert,
		DNSNames: []string{"kube-apiserver"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}, Validity: 100 * 24 * time.Hour,
	}, SignedBy("ca"))
	p.client = generate(t, m, &Certificate{Name: "admin", CommonName: "admin", Organization: []string{"system:masters"}, Usage: ClientCert}, SignedBy("ca"))
	p.key = generate(t, m, &PrivateKey{Name: "service-account-key"}, append(options, KeepOld())...)
	if err := m.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pass) get(t *testing.T, name string, class Class) *corev1.Secret {
	t.Helper()
	secret, ok := p.manager.Get(name, class)
	if !ok {
		return nil
	}
	return secret
}

// names are the secrets in the namespace.
func names(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, secret := range list.Items {
		out = append(out, secret.Name)
	}
	return slices.Sorted(slices.Values(out))
}

// verify checks a certificate against a CA bundle.
func verify(certs *corev1.Secret, roots []byte, usage x509.ExtKeyUsage) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	pair, err := tls.X509KeyPair(certs.Data[DataKeyCertificate], certs.Data[DataKeyPrivateKey])
	if err != nil {
		return err
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: start.Add(3 * time.Hour), KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

func TestSecondReconciliationChangesNothing(t *testing.T) {
	writes := 0
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			writes++
			return c.Delete(ctx, obj, opts...)
		},
	})
	now := clocktesting.NewFakePassiveClock(start)
	first := run(t, c, now, nil)
	if err := verify(first.server, first.ca.Data[DataKeyCertificateCA], x509.ExtKeyUsageServerAuth); err != nil {
		t.Error(err)
	}
	if err := verify(first.server, first.ca.Data[DataKeyCertificateCA], x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("a server certificate is valid for clients")
	}
	if err := verify(first.client, first.server.Data[DataKeyCertificateCA], x509.ExtKeyUsageClientAuth); err != nil {
		t.Error(err)
	}
	want := map[string]string{
		LabelKeyName: "kube-apiserver", LabelKeyManagedBy: LabelValueSecretsManager, LabelKeyManagerIdentity: "gardenlet",
		LabelKeyIssuedAtTime: "1800000000", LabelKeyValidUntilTime: "1808640000", LabelKeyLastRotationInitiationTime: "",
		LabelKeyChecksumConfig: first.server.Labels[LabelKeyChecksumConfig], LabelKeyChecksumSigningCA: hash(first.ca.Data[DataKeyCertificateCA]),
	}
	if diff := cmp.Diff(want, first.server.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if first.server.Immutable == nil || !*first.server.Immutable {
		t.Error("the secret is not immutable")
	}
	before := names(t, c)
	writes = 0
	now.SetTime(start.Add(24 * time.Hour))
	second := run(t, c, now, nil)
	if diff := cmp.Diff(before, names(t, c)); diff != "" || writes != 0 {
		t.Errorf("%d writes; secrets (-want +got):\n%s", writes, diff)
	}
	if diff := cmp.Diff(first.server.Data, second.server.Data); diff != "" {
		t.Errorf("other data (-want +got):\n%s", diff)
	}
}

func TestRotation(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	now := clocktesting.NewFakePassiveClock(start)
	before := run(t, c, now, nil)

	now.SetTime(start.Add(time.Hour))
	rotations := map[string]time.Time{"ca": now.Now(), "service-account-key": now.Now()}
	var prepared *pass
	for range 2 { // the second reconciliation finds what the first one created
		prepared = run(t, c, now, rotations)
	}
	if prepared.ca.Name == before.ca.Name || prepared.get(t, "ca", Old).Name != before.ca.Name {
		t.Errorf("current is %s, old is %v", prepared.ca.Name, prepared.get(t, "ca", Old))
	}
	if prepared.server.Name != before.server.Name {
		t.Error("the server has a certificate that no client trusts yet")
	}
	if err := verify(prepared.client, prepared.ca.Data[DataKeyCertificateCA], x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("client certificates are not signed by the new CA: %v", err)
	}
	bundle := prepared.get(t, "ca", Bundle)
	both := append(slices.Clone(prepared.ca.Data[DataKeyCertificateCA]), before.ca.Data[DataKeyCertificateCA]...)
	if !bytes.Equal(bundle.Data[DataKeyCertificateBundle], both) {
		t.Error("the bundle does not have the new CA and the old one")
	}
	if keys := prepared.get(t, "service-account-key", Bundle).Data[DataKeyPrivateKeyBundle]; bytes.Count(keys, []byte("BEGIN EC")) != 2 {
		t.Errorf("keys in the bundle: %d", bytes.Count(keys, []byte("BEGIN EC")))
	}

	now.SetTime(start.Add(2 * time.Hour))
	completed := run(t, c, now, rotations, IgnoreOldSecrets())
	if completed.ca.Name != prepared.ca.Name || completed.get(t, "ca", Old) != nil {
		t.Error("completion changes the CA, or keeps the old one")
	}
	if err := verify(completed.server, completed.get(t, "ca", Bundle).Data[DataKeyCertificateBundle], x509.ExtKeyUsageServerAuth); err != nil {
		t.Errorf("the server certificate is not signed by the new CA: %v", err)
	}
	for _, name := range names(t, c) {
		if name == before.ca.Name || name == before.server.Name || name == bundle.Name {
			t.Errorf("%s still exists", name)
		}
	}
	if after := run(t, c, now, rotations, IgnoreOldSecrets()); after.server.Name != completed.server.Name {
		t.Error("not steady after completion")
	}
}

func TestRenewal(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	now := clocktesting.NewFakePassiveClock(start)
	first := run(t, c, now, nil)
	for _, tc := range []struct { // one after the other: they share the secrets
		name    string
		day     int
		renewed bool
	}{
		{name: "79 days of 100, not renewed", day: 79},
		{name: "80 days of 100, renewed", day: 80, renewed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newManager(t, c, clocktesting.NewFakePassiveClock(start.Add(time.Duration(tc.day)*24*time.Hour)), nil)
			generate(t, m, &CertificateAuthority{Name: "ca"}, KeepOld())
			server := generate(t, m, &Certificate{
				Name: "kube-apiserver", CommonName: "kube-apiserver", Usage: ServerCert,
				DNSNames: []string{"kube-apiserver"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}, Validity: 100 * 24 * time.Hour,
			}, SignedBy("ca"))
			if renewed := server.Name != first.server.Name; renewed != tc.renewed {
				t.Errorf("renewed: %v", renewed)
			}
		})
	}
	// A renewed certificate stays, although no rotation was initiated.
	now.SetTime(start.Add(81 * 24 * time.Hour))
	renewed := run(t, c, now, nil)
	now.SetTime(start.Add(82 * 24 * time.Hour))
	if again := run(t, c, now, nil); again.server.Name != renewed.server.Name || renewed.server.Name == first.server.Name {
		t.Errorf("first %s, renewed %s, then %s", first.server.Name, renewed.server.Name, again.server.Name)
	}
	now.SetTime(start.Add(defaultValidity - 9*24*time.Hour))
	if late := run(t, c, now, nil); late.ca.Name != first.ca.Name {
		t.Error("the CA was replaced without a rotation")
	}
	m := newManager(t, c, now, nil)
	if ca := generate(t, m, &CertificateAuthority{Name: "ca"}, KeepOld(), RenewCA()); ca.Name == first.ca.Name {
		t.Error("the CA is not renewed before it expires")
	}
}

// While a CA is replaced, the old one signs for servers as long as it is valid: to the end if its owner rotates it, and until a day before if it is renewed
// by itself.
func TestOldAuthorityExpires(t *testing.T) {
	const validity = 30 * 24 * time.Hour
	for name, tc := range map[string]struct {
		left    time.Duration
		options []Option
		old     bool
	}{
		"rotated, an hour is left":   {left: time.Hour, old: true},
		"rotated, expired":           {left: -time.Hour},
		"renewed, two days are left": {left: 48 * time.Hour, options: []Option{RenewCA()}, old: true},
		"renewed, an hour is left":   {left: time.Hour, options: []Option{RenewCA()}},
		"renewed, expired":           {left: -time.Hour, options: []Option{RenewCA()}},
	} {
		t.Run(name, func(t *testing.T) {
			c, now := fake.NewClientBuilder().Build(), clocktesting.NewFakePassiveClock(start)
			pass := func(rotations map[string]time.Time) (ca, server *corev1.Secret) {
				m := newManager(t, c, now, rotations)
				ca = generate(t, m, &CertificateAuthority{Name: "ca", Validity: validity}, append(tc.options, KeepOld())...)
				return ca, generate(t, m, &Certificate{Name: "server", Usage: ServerCert, WithoutCA: true, Validity: validity}, SignedBy("ca"))
			}
			old, _ := pass(nil)
			now.SetTime(start.Add(validity - tc.left))
			rotations := map[string]time.Time{"ca": now.Now()}
			if len(tc.options) > 0 {
				rotations = nil
			}
			current, server := pass(rotations)
			if current.Name == old.Name {
				t.Fatal("the CA was not replaced")
			}
			signer := current
			if tc.old {
				signer = old
			}
			if got, want := server.Labels[LabelKeyChecksumSigningCA], hash(signer.Data[DataKeyCertificateCA]); got != want {
				t.Errorf("the server has a certificate of %s, want one of %s (%s)", got, want, signer.Name)
			}
		})
	}
}

func TestUseDataForName(t *testing.T) {
	data := map[string][]byte{DataKeyCertificateCA: []byte("cert"), DataKeyPrivateKeyCA: []byte("key")}
	kept := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "from-before", Labels: map[string]string{LabelKeyUseDataForName: "ca"}}, Data: data,
	}
	c := fake.NewClientBuilder().WithObjects(kept).Build()
	m := newManager(t, c, clocktesting.NewFakePassiveClock(start), nil)
	ca := generate(t, m, &CertificateAuthority{Name: "ca"})
	if diff := cmp.Diff(data, ca.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if err := m.Cleanup(t.Context()); err != nil || !slices.Contains(names(t, c), "from-before") {
		t.Errorf("the labelled secret is deleted: %v", err)
	}
	// A rotation creates new data.
	m = newManager(t, c, clocktesting.NewFakePassiveClock(start), map[string]time.Time{"ca": start})
	if rotated := generate(t, m, &CertificateAuthority{Name: "ca"}); bytes.Equal(rotated.Data[DataKeyCertificateCA], []byte("cert")) {
		t.Error("the data is used again after a rotation")
	}
	second := kept.DeepCopy()
	second.Name, second.ResourceVersion = "another", ""
	c = fake.NewClientBuilder().WithObjects(kept, second).Build()
	_, err := newManager(t, c, clocktesting.NewFakePassiveClock(start), nil).Generate(t.Context(), &CertificateAuthority{Name: "ca"})
	if err == nil || !strings.Contains(err.Error(), "2 secrets have the label secrets-manager-use-data-for-name=ca") {
		t.Errorf("Generate() = %v", err)
	}
}

func TestAnotherIdentity(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	run(t, c, clocktesting.NewFakePassiveClock(start), nil)
	before := names(t, c)
	other, err := New(t.Context(), Values{Client: c, Namespace: namespace, Identity: "provider-local"})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, names(t, c)); diff != "" {
		t.Errorf("secrets of another identity (-want +got):\n%s", diff)
	}
	if _, err := other.Generate(t.Context(), &Certificate{Name: "x", Usage: ServerCert}, SignedBy("ca")); err == nil ||
		err.Error() != `secret "x": its CA "ca" has to be generated first` {
		t.Errorf("Generate() = %v", err)
	}
	if _, err := other.Generate(t.Context(), &Certificate{Name: "x", Usage: ServerCert}); err == nil {
		t.Error("a certificate was generated without a CA")
	}
}

func TestInterruptedReconciliation(t *testing.T) {
	// The object was created after this manager listed the secrets.
	c := fake.NewClientBuilder().Build()
	now := clocktesting.NewFakePassiveClock(start)
	late := newManager(t, c, now, nil)
	first := generate(t, newManager(t, c, now, nil), &CertificateAuthority{Name: "ca"})
	second := generate(t, late, &CertificateAuthority{Name: "ca"})
	if diff := cmp.Diff(first.Data, second.Data); diff != "" {
		t.Errorf("two CAs (-first +second):\n%s", diff)
	}
}

func TestIgnoreOldSecretsAfter(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	now := clocktesting.NewFakePassiveClock(start)
	generate(t, newManager(t, c, now, nil), &Password{Name: "observability", Username: "admin"}, KeepOld())
	rotations := map[string]time.Time{"observability": start}
	for age, old := range map[time.Duration]bool{time.Hour: true, 24 * time.Hour: false} {
		now.SetTime(start)
		generate(t, newManager(t, c, now, rotations), &Password{Name: "observability", Username: "admin"}, KeepOld())
		now.SetTime(start.Add(age))
		m := newManager(t, c, now, rotations)
		generate(t, m, &Password{Name: "observability", Username: "admin"}, KeepOld(), IgnoreOldSecretsAfter(24*time.Hour))
		if _, ok := m.Get("observability", Old); ok != old {
			t.Errorf("after %s the old secret is kept: %v", age, ok)
		}
	}
}

func TestOtherCredentials(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	m := newManager(t, c, clocktesting.NewFakePassiveClock(start), nil)
	generate(t, m, &CertificateAuthority{Name: "ca"})

	t.Run("password", func(t *testing.T) {
		data := generate(t, m, &Password{Name: "pw", Username: "admin"}).Data
		user, hashed, _ := strings.Cut(string(data[DataKeyAuth]), ":")
		if err := bcrypt.CompareHashAndPassword([]byte(hashed), data[DataKeyPassword]); err != nil || user != "admin" || len(data[DataKeyPassword]) != 32 {
			t.Errorf("user %q, %d characters, %v", user, len(data[DataKeyPassword]), err)
		}
	})
	t.Run("static tokens", func(t *testing.T) {
		data := generate(t, m, &StaticToken{Name: "tokens", Users: []TokenUser{{Name: "health", UID: "1", Groups: []string{"a", "b"}}, {Name: "x", UID: "2"}}}).Data
		lines := strings.Split(strings.TrimSpace(string(data[DataKeyStaticTokenCSV])), "\n")
		if len(lines) != 2 || !strings.HasSuffix(lines[0], `,health,1,"a,b"`) || !strings.HasSuffix(lines[1], ",x,2") {
			t.Errorf("unexpected format of the tokens: %d lines", len(lines))
		}
	})
	t.Run("encryption key", func(t *testing.T) {
		data := generate(t, m, &EncryptionKey{Name: "etcd-encryption"}).Data
		if len(data[DataKeyEncryptionSecret]) != 32 || string(data[DataKeyEncryptionKeyName]) != "key1800000000" || string(data[DataKeyEncryptionProvider]) != "aescbc" {
			t.Errorf("key %q of %d bytes for %q", data[DataKeyEncryptionKeyName], len(data[DataKeyEncryptionSecret]), data[DataKeyEncryptionProvider])
		}
	})
	for name, bits := range map[string]int{"ssh-ed25519": 0, "ssh-rsa": 2048} {
		t.Run(name, func(t *testing.T) {
			data := generate(t, m, &SSHKeyPair{Name: name, RSABits: bits}).Data
			signer, err := ssh.ParsePrivateKey(data[DataKeyRSAPrivateKey])
			if err != nil {
				t.Fatal(err)
			}
			if got := ssh.MarshalAuthorizedKey(signer.PublicKey()); !bytes.Equal(got, data[DataKeySSHAuthorizedKeys]) || signer.PublicKey().Type() != name {
				t.Errorf("public key %s", data[DataKeySSHAuthorizedKeys])
			}
		})
	}
	t.Run("RSA key", func(t *testing.T) {
		block, _ := pem.Decode(generate(t, m, &PrivateKey{Name: "rsa", RSABits: 2048}).Data[DataKeyRSAPrivateKey])
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err != nil || key.N.BitLen() != 2048 {
			t.Errorf("%v", err)
		}
	})
	t.Run("kubeconfig", func(t *testing.T) {
		secret := generate(t, m, &Kubeconfig{
			Name: "admin", Server: "https://api.example", CA: []byte("ca"), TLSServerName: "api",
			Certificate: &Certificate{CommonName: "admin", Usage: ClientCert, Validity: time.Hour},
		}, SignedBy("ca"))
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[DataKeyKubeconfig])
		if err != nil || config.Host != "https://api.example" || config.ServerName != "api" || len(config.CertData) == 0 {
			t.Errorf("config %v: %v", config, err)
		}
		if want := fmt.Sprint(start.Add(time.Hour).Unix()); secret.Labels[LabelKeyValidUntilTime] != want {
			t.Errorf("valid until %s, want %s", secret.Labels[LabelKeyValidUntilTime], want)
		}
	})
	t.Run("valid no longer than its CA", func(t *testing.T) {
		generate(t, m, &CertificateAuthority{Name: "short", Validity: time.Hour})
		secret := generate(t, m, &Certificate{Name: "long", Usage: ServerClientCert, WithoutCA: true}, SignedByClass("short", Current), Persist())
		if secret.Labels[LabelKeyValidUntilTime] != fmt.Sprint(start.Add(time.Hour).Unix()) || secret.Labels[LabelKeyPersist] != "true" {
			t.Errorf("labels %v", secret.Labels)
		}
		if got := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(got, []string{DataKeyCertificate, DataKeyPrivateKey}) {
			t.Errorf("data has %v", got)
		}
	})
}

func TestChecksum(t *testing.T) {
	sum := func(c Config) string {
		s, err := checksum(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// Names of existing secrets depend on these: a change replaces every credential of every cluster.
	for want, config := range map[string]Config{
		"2e510a97442b7ab1038ff1e6ac18909e": &CertificateAuthority{Name: "ca"},
		"2f799dacc92b429f129a06c72a9255cc": &Certificate{Name: "a", CommonName: "b", Usage: ServerCert, DNSNames: []string{"c"}},
	} {
		if got := sum(config); got != want {
			t.Errorf("%s: %s, want %s", config.SecretName(), got, want)
		}
	}
	if sum(&CertificateAuthority{Name: "ca"}) != sum(&CertificateAuthority{Name: "ca", Validity: time.Hour}) {
		t.Error("a CA is replaced because its config changed")
	}
	if sum(&EncryptionKey{Name: "key"}) != sum(&EncryptionKey{Name: "key", Provider: "secretbox"}) {
		t.Error("an encryption key is replaced because its provider changed: what is stored could not be read any more")
	}
	if sum(&PrivateKey{Name: "a"}) == sum(&PrivateKey{Name: "a", RSABits: 2048}) || sum(&PrivateKey{Name: "a"}) == sum(&Password{Name: "a"}) {
		t.Error("different credentials have the same checksum")
	}
}
