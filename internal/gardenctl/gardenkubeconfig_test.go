package gardenctl

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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
