package gardenctl

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	gardensPath = "/apis/operator.gardener.cloud/v1alpha1/gardens"
	reviewPath  = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	secretsPath = "/api/v1/namespaces/garden/secrets"
)

// runtimeCluster is a runtime cluster with a Garden and its CAs.
func runtimeCluster(t *testing.T) answers {
	t.Helper()
	stored := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	manager, err := secrets.New(t.Context(), secrets.Values{
		Client: stored, Namespace: "garden", Identity: operatorv1alpha1.SecretManagerIdentityOperator,
		Clock: clocktesting.NewFakePassiveClock(now.Add(-time.Hour)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca", "ca-client"} {
		if _, err := manager.Generate(t.Context(), &secrets.CertificateAuthority{Name: name, CommonName: name}); err != nil {
			t.Fatal(err)
		}
	}
	all := &corev1.SecretList{}
	if err := stored.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	garden := operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "live"}}
	garden.Spec.VirtualCluster.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}, {Name: "old.example.com"}}
	return answers{
		"GET " + gardensPath: object(&operatorv1alpha1.GardenList{Items: []operatorv1alpha1.Garden{garden}}),
		"POST " + reviewPath: object(&authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "eve@example.com"}},
		}),
		// The labels that are asked for are those of the one CA or the other.
		"GET " + secretsPath: func(w http.ResponseWriter, r *http.Request) {
			list := &corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
			for _, secret := range all.Items {
				if strings.Contains(","+r.URL.Query().Get("labelSelector")+",", ",name="+secret.Labels["name"]+",") {
					list.Items = append(list.Items, secret)
				}
			}
			object(list)(w, r)
		},
	}
}

// An operator of the runtime cluster gets access to the garden for a time, under the name there.
func TestGardenKubeconfig(t *testing.T) {
	run := online(t, runtimeCluster(t))
	code, out, errOut := run("garden", "kubeconfig", "--expiration=30m", "-o", "yaml")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://api.garden.example.com" || len(config.CAData) == 0 {
		t.Errorf("the server is %q", config.Host)
	}
	block, _ := pem.Decode(config.CertData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if certificate.Subject.CommonName != "gardenctl:eve@example.com" || !slices.Equal(certificate.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("the user is %s", certificate.Subject)
	}
	if want := now.Add(30 * time.Minute); !certificate.NotAfter.Equal(want) {
		t.Errorf("it is valid until %s, not %s", certificate.NotAfter, want)
	}

	if code, out, errOut = run("garden", "kubeconfig"); code != 0 || !strings.HasSuffix(strings.TrimSpace(out), "/garden/live-admin.yaml") {
		t.Errorf("exit code %d, the file is %q: %s", code, out, errOut)
	}
}

// authentication is the structured authentication of the garden.
const authentication = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://login.example.com
    audiences: [garden]
    certificateAuthority: private
- issuer:
    url: https://other.example.com/realm
    audiences: [one, two]
`

// withOIDC is a runtime cluster whose Garden trusts two issuers, and has certificates for more names.
func withOIDC(t *testing.T, change func(*operatorv1alpha1.Garden), config string) answers {
	t.Helper()
	a := runtimeCluster(t)
	garden := operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "live"}}
	v := &garden.Spec.VirtualCluster
	v.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}, {Name: "old.example.com"}}
	v.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{
		KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"}},
		SNI:                 &operatorv1alpha1.SNI{SecretName: new("sni"), DomainPatterns: []string{"*.example.org"}},
	}
	if change != nil {
		change(&garden)
	}
	a["GET "+gardensPath] = object(&operatorv1alpha1.GardenList{Items: []operatorv1alpha1.Garden{garden}})
	a["GET /api/v1/namespaces/garden/configmaps/authentication"] = object(&corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"config.yaml": config},
	})
	a["GET "+secretsPath+"/sni"] = object(&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"ca.crt": []byte("theirs")}})
	return a
}

// dashboardLogin is what the dashboard would give to users.
func dashboardLogin(garden *operatorv1alpha1.Garden) {
	garden.Spec.VirtualCluster.Gardener.GardenerDashboard = &operatorv1alpha1.GardenerDashboardConfig{OIDCConfig: &operatorv1alpha1.DashboardOIDC{
		IssuerURL: new("https://other.example.com/realm"), ClientIDPublic: new("public"), AdditionalScopes: []string{"groups"},
	}}
}

// A kubeconfig for users has no credentials: kubectl asks the plugin for a token of the issuer that the garden trusts.
func TestGardenKubeconfigByOIDC(t *testing.T) {
	const ca = "cHJpdmF0ZQ=="
	for name, tc := range map[string]struct {
		change       func(*operatorv1alpha1.Garden)
		args         []string
		want         []string
		host, caData string
	}{
		"an issuer with one audience": {
			args: []string{"--oidc-issuer-url=https://login.example.com"}, host: "api.garden.example.com",
			want: []string{"--oidc-issuer-url=https://login.example.com", "--oidc-client-id=garden", "--oidc-extra-scope=email", "--certificate-authority-data=" + ca},
		},
		"what the dashboard would give": {
			change: dashboardLogin, host: "api.garden.example.com",
			want: []string{"--oidc-issuer-url=https://other.example.com/realm", "--oidc-client-id=public", "--oidc-extra-scope=email", "--oidc-extra-scope=groups"},
		},
		"another issuer than that of the dashboard": {
			change: dashboardLogin, args: []string{"--oidc-issuer-url=https://login.example.com"}, host: "api.garden.example.com",
			want: []string{"--oidc-issuer-url=https://login.example.com", "--oidc-client-id=garden", "--oidc-extra-scope=email", "--certificate-authority-data=" + ca},
		},
		"flags": {
			args: []string{"--oidc-issuer-url=https://other.example.com/realm", "--oidc-client-id=two", "--oidc-extra-scope=groups", "--oidc-extra-scope=openid", "--host=gardener.old.example.com"},
			host: "gardener.old.example.com",
			want: []string{"--oidc-issuer-url=https://other.example.com/realm", "--oidc-client-id=two", "--oidc-extra-scope=email", "--oidc-extra-scope=groups"},
		},
		"a name with another certificate": {
			args: []string{"--oidc-issuer-url=https://login.example.com", "--host=kube.example.org"}, host: "kube.example.org", caData: "theirs",
			want: []string{"--oidc-issuer-url=https://login.example.com", "--oidc-client-id=garden", "--oidc-extra-scope=email", "--certificate-authority-data=" + ca},
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := online(t, withOIDC(t, tc.change, authentication))(append([]string{"garden", "kubeconfig", "--oidc", "-o", "yaml"}, tc.args...)...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, errOut)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig([]byte(out))
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != "https://"+tc.host || tc.caData == "" && !strings.Contains(string(config.CAData), "BEGIN CERTIFICATE") || tc.caData != "" && string(config.CAData) != tc.caData {
				t.Errorf("the server is %q, and its CA %q", config.Host, config.CAData)
			}
			if config.ExecProvider == nil || len(config.CertData)+len(config.KeyData)+len(config.BearerToken) > 0 {
				t.Fatalf("the credentials are not those of a plugin: %s", out)
			}
			if diff := cmp.Diff(append([]string{"oidc-login", "get-token"}, tc.want...), config.ExecProvider.Args); diff != "" || config.ExecProvider.Command != "kubectl" {
				t.Errorf("arguments of %s (-want +got):\n%s", config.ExecProvider.Command, diff)
			}
		})
	}
	code, out, errOut := online(t, withOIDC(t, dashboardLogin, authentication))("garden", "kubeconfig", "--oidc")
	if code != 0 || !strings.HasSuffix(strings.TrimSpace(out), "/garden/live-oidc.yaml") {
		t.Errorf("exit code %d, the file is %q: %s", code, out, errOut)
	}
}

func TestGardenKubeconfigByOIDCErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.Garden)
		config string
		args   []string
		want   string
	}{
		"no structured authentication": {
			change: func(g *operatorv1alpha1.Garden) { g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = nil }, want: "has no spec.virtualCluster.kubernetes.kubeAPIServer.structuredAuthentication",
		},
		"no ConfigMap": {change: func(g *operatorv1alpha1.Garden) {
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer.StructuredAuthentication.ConfigMapName = "none"
		}, want: `read ConfigMap "garden/none"`},
		"no issuer":         {config: "jwt: []", want: "has no issuer in jwt"},
		"no YAML":           {config: "jwt: [", want: `key "config.yaml" of ConfigMap "garden/authentication"`},
		"several issuers":   {config: authentication, want: "choose one with --oidc-issuer-url"},
		"another issuer":    {config: authentication, args: []string{"--oidc-issuer-url=https://evil.example.com"}, want: "is not trusted, only https://login.example.com"},
		"several audiences": {config: authentication, args: []string{"--oidc-issuer-url=https://other.example.com/realm"}, want: "choose the client with --oidc-client-id"},
		"another host":      {config: authentication, args: []string{"--oidc-issuer-url=https://login.example.com", "--host=a.b.example.org"}, want: "matches no pattern of sni"},
		"an expiration":     {config: authentication, args: []string{"--expiration=1h"}, want: "the issuer says how long tokens are valid"},
		"a flag without it": {config: authentication, args: []string{"--oidc=false", "--host=a.example.org"}, want: "are for --oidc"},
		"no certificate yet": {
			config: authentication, args: []string{"--oidc-issuer-url=https://login.example.com", "--host=a.example.org"}, want: `read Secret "garden/none"`,
			change: func(g *operatorv1alpha1.Garden) {
				g.Spec.VirtualCluster.Kubernetes.KubeAPIServer.SNI.SecretName = new("none")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := online(t, withOIDC(t, tc.change, tc.config))(append([]string{"garden", "kubeconfig", "--oidc"}, tc.args...)...)
			if code != 1 || out != "" || !strings.Contains(errOut, tc.want) {
				t.Errorf("exit code %d, output %q, error %q, want one with %q", code, out, errOut, tc.want)
			}
		})
	}
}

// While CAs are rotated, the certificate is one of the CA that all kube-apiservers trust.
func TestPhaseOfCAs(t *testing.T) {
	garden := &operatorv1alpha1.Garden{}
	if phase := caPhase(garden); phase != "" {
		t.Errorf("the phase of a new Garden is %q", phase)
	}
	garden.Status.Credentials = &operatorv1alpha1.Credentials{Rotation: &operatorv1alpha1.CredentialsRotation{
		CertificateAuthorities: &corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing},
	}}
	if phase := caPhase(garden); phase != corev1beta1.RotationPreparing {
		t.Errorf("the phase is %q", phase)
	}
}

func TestGardenKubeconfigErrors(t *testing.T) {
	none := runtimeCluster(t)
	none["GET "+gardensPath] = object(&operatorv1alpha1.GardenList{})
	early := runtimeCluster(t)
	early["GET "+secretsPath] = object(&corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}})
	forbidden := runtimeCluster(t)
	forbidden["GET "+secretsPath] = status(http.StatusForbidden, metav1.StatusReasonForbidden)
	for name, tc := range map[string]struct {
		cluster answers
		args    []string
		want    string
	}{
		"another cluster":         {cluster: answers{}, want: "it has to be the runtime cluster of the garden"},
		"no Garden":               {cluster: none, want: "there are 0 Gardens"},
		"no credentials yet":      {cluster: early, want: "no CAs of the kube-apiserver yet"},
		"no access to Secrets":    {cluster: forbidden, want: "list Secrets"},
		"too long":                {cluster: early, args: []string{"--expiration=25h"}, want: "between 10m0s and 24h0m0s"},
		"too short":               {cluster: early, args: []string{"--expiration=1m"}, want: "between 10m0s and 24h0m0s"},
		"a configured garden":     {cluster: early, args: []string{"--garden=live"}, want: "set the kubeconfig of the runtime cluster"},
		"an unknown output":       {cluster: early, args: []string{"--output=text"}, want: "must be yaml or json"},
		"two places":              {cluster: early, args: []string{"--output=yaml", "--file=x"}, want: "exclude each other"},
		"an argument is too much": {cluster: early, args: []string{"live"}, want: "usage"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := online(t, tc.cluster)(append([]string{"garden", "kubeconfig"}, tc.args...)...)
			if code != 1 || out != "" || !strings.Contains(errOut, tc.want) {
				t.Errorf("exit code %d, output %q, error %q, want one with %q", code, out, errOut, tc.want)
			}
		})
	}
}
