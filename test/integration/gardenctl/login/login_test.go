// Package login tests how users log in to a virtual garden: kubectl, its plugin, an issuer, and a kube-apiserver that trusts it and has a certificate
// for more names.
package login

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/gardenctl"
	"gardener.cloud/gardener/test/env"
)

const (
	// controlPlane is what gardener-operator deploys for a Garden whose sni has this pattern.
	controlPlane = "../../../../internal/operator/garden/values/testdata/full-kube-apiserver.yaml"
	pattern      = "*.sni.example.com"
	host         = "kube.sni.example.com"
)

// issuer is an OpenID Connect issuer, and the key that it signs tokens with.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	i.Server = httptest.NewTLSServer(mux)
	t.Cleanup(i.Close)
	serve := func(path string, document any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(document)
		})
	}
	serve("/.well-known/openid-configuration", map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	serve("/keys", jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	return i
}

// ca is the certificate of the issuer.
func (i *issuer) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
}

func (i *issuer) token(t *testing.T, user string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": i.URL, "aud": "garden", "sub": user, "email": user, "email_verified": true, "groups": []string{"operators"},
		"iat": time.Now().Add(-time.Minute).Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// certificate returns a self-signed certificate for names, and its key.
func certificate(t *testing.T, names ...string) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func write(t *testing.T, file string, data []byte, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(file, data, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// A kubeconfig without credentials is enough for a user: kubectl gets a token from the plugin, finds the certificate for the name of sni, and is
// authenticated by the structured authentication.
func TestLogin(t *testing.T) {
	kubectl := env.Kubectl(t)
	dir := t.TempDir()
	i := newIssuer(t)
	authentication, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer": map[string]any{"url": i.URL, "audiences": []string{"garden"}, "certificateAuthority": i.ca()},
			"claimMappings": map[string]any{
				"username": map[string]any{"claim": "email", "prefix": "oidc:"}, "groups": map[string]any{"claim": "groups", "prefix": "oidc:"},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM := certificate(t, pattern)
	cert, key := write(t, filepath.Join(dir, "tls.crt"), certPEM, 0o600), write(t, filepath.Join(dir, "tls.key"), keyPEM, 0o600)
	// The flag is the one that is deployed, except for the paths.
	deployed, err := os.ReadFile(controlPlane)
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`--tls-sni-cert-key=(\S+/tls\.crt),(\S+/tls\.key):(\S+)`).FindStringSubmatch(string(deployed))
	if flag == nil || flag[3] != pattern {
		t.Fatalf("%s has no certificate for %s", controlPlane, pattern)
	}
	e := env.Start(t, env.Lenient(), env.KubeAPIServerFlags(
		strings.NewReplacer(flag[1], cert, flag[2], key).Replace(flag[0]),
		"--authentication-config="+write(t, filepath.Join(dir, "authentication.yaml"), authentication, 0o600),
	))
	createGarden(t, e, string(authentication), certPEM)

	runtime := filepath.Join(dir, "runtime.yaml")
	if err := e.WriteKubeconfig(runtime); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	users := filepath.Join(dir, "users.yaml")
	if code := gardenctl.Run(t.Context(), gardenctl.Options{
		Out: &out, ErrOut: &errOut, ConfigDir: dir, CacheDir: dir, Clock: clock.RealClock{},
	}, []string{"garden", "kubeconfig", "--kubeconfig", runtime, "--oidc", "--host", host, "--file", users}); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	config, err := clientcmd.LoadFromFile(users)
	if err != nil {
		t.Fatal(err)
	}
	// There is no DNS in this test: the address is given, and the name sent all the same.
	cluster := config.Clusters["live"]
	if cluster.Server != "https://"+host {
		t.Errorf("the server is %s", cluster.Server)
	}
	cluster.Server, cluster.TLSServerName = e.Config.Host, host
	if err := clientcmd.WriteToFile(*config, users); err != nil {
		t.Fatal(err)
	}

	// The plugin stands for kubelogin, which opens a browser.
	write(t, filepath.Join(dir, "kubectl-oidc_login"), fmt.Appendf(nil, `#!/bin/sh
case "$*" in
"get-token --oidc-issuer-url=%s --oidc-client-id=garden --oidc-extra-scope=email --certificate-authority-data="*)
  echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' ;;
*) echo "unexpected arguments: $*" >&2; exit 1 ;;
esac
`, i.URL, i.token(t, "eve@example.com")), 0o700)
	cmd := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", users, "auth", "whoami", "-o", "yaml")
	cmd.Env = append(os.Environ(), "PATH="+strings.Join([]string{dir, filepath.Dir(kubectl), os.Getenv("PATH")}, string(filepath.ListSeparator)))
	answer, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl auth whoami: %v\n%s", err, answer)
	}
	for _, want := range []string{"username: oidc:eve@example.com", "- oidc:operators"} {
		if !strings.Contains(string(answer), want) {
			t.Errorf("the user has no %q:\n%s", want, answer)
		}
	}
}

// createGarden creates a Garden, and what it refers to.
func createGarden(t *testing.T, e *env.Env, authentication string, ca []byte) {
	t.Helper()
	if err := errors.Join(apiextensionsv1.AddToScheme(e.Scheme), operatorv1alpha1.AddToScheme(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Operator()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../../internal/validation/operator/testdata/garden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	garden := &operatorv1alpha1.Garden{}
	if err := yaml.UnmarshalStrict(data, garden); err != nil {
		t.Fatal(err)
	}
	garden.Name = "live"
	garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{
		KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"}},
		SNI:                 &operatorv1alpha1.SNI{SecretName: new("sni"), DomainPatterns: []string{pattern}},
	}
	for _, obj := range []client.Object{
		garden,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "authentication"}, Data: map[string]string{"config.yaml": authentication}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "sni"}, Data: map[string][]byte{"ca.crt": ca}},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}
