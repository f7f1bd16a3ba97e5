// Package discoveryserver tests gardener-discovery-server against real API servers.
package discoveryserver

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"
	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerdiscoveryserver"
	"gardener.cloud/gardener/internal/discoveryserver"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/publication"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/secrets"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

const (
	host    = "discovery.ingress.example.com"
	timeout = 60 * time.Second
	again   = 20 * time.Millisecond // nothing says over HTTP when a document changes
)

// TestDiscoveryServer runs the process with the rights that its component gives it. Documents are those that the gardenlet publishes.
func TestDiscoveryServer(t *testing.T) {
	dir := t.TempDir()
	identityKey, identityPEM := newKey(t)
	write(t, dir, "identity.key", identityPEM)
	e := env.Start(t, env.Lenient(), env.Flags(
		"--workload-identity-token-issuer="+issuer.WorkloadIdentityURL(host), "--workload-identity-signing-key-file="+filepath.Join(dir, "identity.key")))
	ctx := t.Context()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-evil"}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: new("garden-dev")}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Spec: corev1beta1.ProjectSpec{Namespace: new("garden-evil")}},
	} {
		if err := e.Client.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	managed := func(s *corev1beta1.Shoot) {
		s.Annotations = map[string]string{"authentication.gardener.cloud/issuer": "managed"}
	}
	victim, evil := builder.Shoot("victim", builder.In("garden-dev"), managed), builder.Shoot("evil", builder.In("garden-evil"), managed)
	for _, shoot := range []*corev1beta1.Shoot{victim, evil} {
		if err := e.Client.Create(ctx, shoot); err != nil {
			t.Fatal(err)
		}
	}
	values := gardenerdiscoveryserver.Values{Namespace: "garden", Host: host, GenericKubeconfig: "generic"}
	if err := kube.Apply(ctx, e.Client, "test", gardenerdiscoveryserver.TargetObjects(values)...); err != nil {
		t.Fatal(err)
	}
	documents, err := gardenerdiscoveryserver.WorkloadIdentitySecret("garden", host, &corev1.Secret{Data: map[string][]byte{secrets.DataKeyPrivateKeyBundle: identityPEM}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range documents.Data {
		write(t, dir, name, content)
	}
	c := start(t, e, dir)
	identityIssuer := issuer.WorkloadIdentityURL(host)
	victimIssuer, evilIssuer := issuer.URL(host, "dev", victim.UID), issuer.URL(host, "evil", evil.UID)

	step := env.Story(t)
	step("nothing is published")
	for _, path := range []string{"/.well-known/openid-configuration", "/jwks"} {
		await(t, c, victimIssuer+path, http.StatusNotFound)
	}
	ca := strings.TrimSuffix(victimIssuer, "/issuer") + "/cluster-ca"
	await(t, c, ca, http.StatusNotFound)

	step("the gardenlet publishes documents and the CA, and a third party verifies a token of the shoot")
	key := publish(t, e, victim, "dev", victimIssuer)
	await(t, c, victimIssuer+"/jwks", http.StatusOK)
	token := sign(t, key, victimIssuer)
	if err := verify(t, c, victimIssuer, token); err != nil {
		t.Error(err)
	}
	certs := map[string]string{}
	if err := json.Unmarshal(await(t, c, ca, http.StatusOK), &certs); err != nil || !strings.HasPrefix(certs["certs"], "-----BEGIN CERTIFICATE-----\n") {
		t.Errorf("the CA is %v, error %v", certs, err)
	}

	step("a third party verifies a token of a WorkloadIdentity")
	if err := verify(t, c, identityIssuer, workloadIdentityToken(t, e)); err != nil {
		t.Error(err)
	}
	if err := verify(t, c, victimIssuer, sign(t, identityKey, victimIssuer)); err == nil {
		t.Error("the key of WorkloadIdentities signs tokens of shoots")
	}

	step("a Secret of another project takes the place of that of the shoot")
	forgery, _ := newKey(t)
	secret := env.Named[*corev1.Secret]("gardener-system-shoot-issuer", issuer.SecretName("dev", victim.UID))
	if err := e.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	good := secret.DeepCopy()
	config, keySet, err := serviceaccountkey.IssuerDocuments(victimIssuer, []crypto.PublicKey{forgery.Public()})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = map[string][]byte{issuer.OpenIDConfigKey: config, issuer.KeySetKey: keySet}
	secret.Labels["shoot.gardener.cloud/name"], secret.Labels["shoot.gardener.cloud/namespace"] = "evil", "garden-evil"
	if err := e.Client.Update(ctx, secret); err != nil {
		t.Fatal(err)
	}
	await(t, c, victimIssuer+"/jwks", http.StatusNotFound)

	step("a Secret for the own shoot has documents of another one")
	evilSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: issuer.SecretName("evil", evil.UID), Labels: map[string]string{
			"discovery.gardener.cloud/public": "serviceaccount", "project.gardener.cloud/name": "evil",
			"shoot.gardener.cloud/name": "evil", "shoot.gardener.cloud/namespace": "garden-evil",
		},
	}, Data: good.Data}
	if err := e.Client.Create(ctx, evilSecret); err != nil {
		t.Fatal(err)
	}
	// A later valid one is seen, so the one before was not served.
	await(t, c, evilIssuer+"/jwks", http.StatusNotFound)
	await(t, c, issuer.URL(host, "evil", victim.UID)+"/jwks", http.StatusNotFound)

	step("the gardenlet repairs its documents")
	secret.Data, secret.Labels = good.Data, good.Labels
	if err := e.Client.Update(ctx, secret); err != nil {
		t.Fatal(err)
	}
	await(t, c, victimIssuer+"/jwks", http.StatusOK)
	if err := verify(t, c, victimIssuer, token); err != nil {
		t.Error(err)
	}
	if err := verify(t, c, victimIssuer, sign(t, forgery, victimIssuer)); err == nil {
		t.Error("a forged key is served")
	}
	await(t, c, evilIssuer+"/jwks", http.StatusNotFound)

	step("the shoot is gone")
	if err := e.Client.Delete(ctx, victim); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, watch(t, e), victim)
	await(t, c, victimIssuer+"/jwks", http.StatusNotFound)
}

// start runs the command as the user that its token is for, until the end of the test. It returns a client that connects to it for any host.
func start(t *testing.T, e *env.Env, dir string) *http.Client {
	t.Helper()
	serve := serving(t, dir)
	kubeconfig := env.KubeconfigFile(t, e.As(t, "system:serviceaccount:kube-system:"+gardenerdiscoveryserver.Name, "system:serviceaccounts"))
	free := ports.Free(t, 3)
	cmd := discoveryserver.NewCommand()
	cmd.SetArgs([]string{
		"--hostname=" + host, "--kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", free[0]), fmt.Sprintf("--health-port=%d", free[1]), fmt.Sprintf("--metrics-port=%d", free[2]),
		"--tls-cert-file=" + filepath.Join(dir, "tls.crt"), "--tls-private-key-file=" + filepath.Join(dir, "tls.key"),
		"--workload-identity-openid-configuration-file=" + filepath.Join(dir, "openid-configuration.json"),
		"--workload-identity-jwks-file=" + filepath.Join(dir, "jwks.json"),
	})
	cmd.SetErr(t.Output())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the process ends with: %v", err)
		}
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(serve)
	c := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", free[0]))
		},
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
	t.Cleanup(c.CloseIdleConnections)
	await(t, http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/readyz", free[1]), http.StatusOK)
	return c
}

// serving writes the certificate that the secrets manager generates for the component, and returns its CA.
func serving(t *testing.T, dir string) []byte {
	t.Helper()
	m, err := secrets.New(t.Context(), secrets.Values{Client: stagetest.New(t).Seed, Namespace: "garden", Identity: "test", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := m.Generate(t.Context(), &secrets.CertificateAuthority{Name: "ca-gardener", CommonName: "gardener"})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := m.Generate(t.Context(), gardenerdiscoveryserver.GeneratedCertificate("garden", host), secrets.SignedBy("ca-gardener"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range secret.Data {
		write(t, dir, name, content)
	}
	return ca.Data[secrets.DataKeyCertificateCA]
}

// publish does what the gardenlet does for a shoot, and returns the key that signs its tokens.
func publish(t *testing.T, e *env.Env, shoot *corev1beta1.Shoot, project, url string) *ecdsa.PrivateKey {
	t.Helper()
	clusters := stagetest.New(t)
	run := clusters.Run()
	run.GardenCache = e.Client
	in := publication.Inputs{
		Run: run, Shoot: shoot, Project: project, Issuer: url,
		Credentials: credentials.New(credentials.Values{SeedAPI: clusters.Seed, Namespace: stagetest.Namespace, Clock: clock.RealClock{}}),
	}
	all := stagetest.Generate(t, in.Credentials)
	for _, task := range []string{"publish-credentials", "publish-issuer"} {
		if err := stagetest.RunTask(t.Context(), t, publication.Tasks(in), task); err != nil {
			t.Fatal(err)
		}
	}
	key, err := keyutil.ParsePrivateKeyPEM(all.Current("service-account-key").Data[secrets.DataKeyRSAPrivateKey])
	if err != nil {
		t.Fatal(err)
	}
	return key.(*ecdsa.PrivateKey)
}

// workloadIdentityToken returns a token that gardener-apiserver issues.
func workloadIdentityToken(t *testing.T, e *env.Env) string {
	t.Helper()
	identity := &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "identity"},
		Spec: securityv1alpha1.WorkloadIdentitySpec{
			Audiences: []string{"third-party"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"},
		},
	}
	if err := e.Client.Create(t.Context(), identity); err != nil {
		t.Fatal(err)
	}
	request := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	if err := e.Client.SubResource("token").Create(t.Context(), identity, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func sign(t *testing.T, key *ecdsa.PrivateKey, url string) string {
	t.Helper()
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.RegisteredClaims{
		Issuer: url, Subject: "system:serviceaccount:default:app", Audience: jwt.ClaimStrings{"third-party"}, ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)),
	})
	if token.Header["kid"], err = serviceaccountkey.ID(&corev1.Secret{Data: map[string][]byte{secrets.DataKeyRSAPrivateKey: private}}); err != nil {
		t.Fatal(err)
	}
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// verify does what a third party does that trusts an issuer.
func verify(t *testing.T, c *http.Client, url, token string) error {
	t.Helper()
	config := struct {
		Issuer     string                    `json:"issuer"`
		KeySetURL  string                    `json:"jwks_uri"`
		Algorithms []jose.SignatureAlgorithm `json:"id_token_signing_alg_values_supported"`
	}{}
	if err := json.Unmarshal(await(t, c, url+"/.well-known/openid-configuration", http.StatusOK), &config); err != nil {
		return err
	}
	if config.Issuer != url {
		return fmt.Errorf("the configuration is for issuer %q", config.Issuer)
	}
	keys := jose.JSONWebKeySet{}
	if err := json.Unmarshal(await(t, c, config.KeySetURL, http.StatusOK), &keys); err != nil {
		return err
	}
	parsed, err := josejwt.ParseSigned(token, config.Algorithms)
	if err != nil {
		return err
	}
	claims := josejwt.Claims{}
	if err := parsed.Claims(keys, &claims); err != nil {
		return err
	}
	return claims.Validate(josejwt.Expected{Issuer: url, AnyAudience: josejwt.Audience{"third-party"}, Time: time.Now()})
}

// await gets a URL until the answer has a status, and returns its body.
func await(t *testing.T, c *http.Client, url string, status int) []byte {
	t.Helper()
	var body []byte
	last := errors.New("no answer")
	get := func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := c.Do(request)
		if err != nil {
			last = err
			return false, nil
		}
		defer response.Body.Close()
		body, err = io.ReadAll(response.Body)
		last = fmt.Errorf("status %d: %s", response.StatusCode, body)
		return err == nil && response.StatusCode == status, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), again, timeout, true, get); err != nil {
		t.Fatalf("GET %s: want status %d: %v", url, status, last)
	}
	return body
}

func watch(t *testing.T, e *env.Env) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(rest.CopyConfig(e.Config), client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newKey(t *testing.T) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, raw
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}
