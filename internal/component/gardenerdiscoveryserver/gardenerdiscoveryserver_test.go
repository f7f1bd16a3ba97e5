package gardenerdiscoveryserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	virtual := Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, Host: "discovery.ingress.example.com", Certificate: "discovery-tls",
		WorkloadIdentity: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: WorkloadIdentitySecretName},
			Data:       map[string][]byte{"openid-configuration.json": []byte("{}"), "jwks.json": []byte("{}")},
		},
		GenericKubeconfig: "generic-token-kubeconfig-1", Gateway: client.ObjectKey{Namespace: "virtual-garden-istio-ingress", Name: "gateway"}, LogLevel: "debug",
	}
	same := Values{Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 1, Host: "discovery.ingress.example.com", Certificate: "discovery-tls"}
	for name, v := range map[string]Values{"virtual": virtual, "same-cluster": same} {
		objects, err := Objects(v)
		if err != nil {
			t.Fatal(err)
		}
		golden.Objects(t, name+".yaml", objects, gatewayv1.Install)
		golden.Objects(t, name+"-target.yaml", TargetObjects(v))
	}
}

// Pods roll when the keys change.
func TestKeysRollPods(t *testing.T) {
	annotation := func(keys string) string {
		v := Values{WorkloadIdentity: &corev1.Secret{Data: map[string][]byte{"jwks.json": []byte(keys)}}}
		return v.process().PodAnnotations["checksum/workload-identity"]
	}
	if a, b := annotation("1"), annotation("2"); a == "" || a == b {
		t.Errorf("checksums %q and %q", a, b)
	}
}

func garden(change func(*operatorv1alpha1.GardenerDiscoveryServerConfig)) *operatorv1alpha1.Garden {
	g := &operatorv1alpha1.Garden{}
	g.Spec.RuntimeCluster.Ingress.Domains = []operatorv1alpha1.DNSDomain{{Name: "ingress.example.com"}, {Name: "more.example.com"}}
	if change != nil {
		g.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{}
		change(g.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer)
	}
	return g
}

func TestHost(t *testing.T) {
	for want, g := range map[string]*operatorv1alpha1.Garden{
		"discovery.ingress.example.com": garden(nil),
		"keys.example.com": garden(func(c *operatorv1alpha1.GardenerDiscoveryServerConfig) {
			c.Domain = &operatorv1alpha1.DNSDomain{Name: "keys.example.com"}
		}),
	} {
		if got := Host(g); got != want {
			t.Errorf("host %q, want %q", got, want)
		}
	}
}

func TestCertificate(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	covers := func(name, host string, until time.Time) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: certificate(t, host, now.Add(-time.Hour), until)}
	}
	later := now.Add(time.Hour)
	named := func(c *operatorv1alpha1.GardenerDiscoveryServerConfig) { c.TLSSecretName = new("own") }
	absent := func(*operatorv1alpha1.GardenerDiscoveryServerConfig) {}
	for name, tc := range map[string]struct {
		garden *operatorv1alpha1.Garden
		certs  []corev1.Secret
		want   string
	}{
		"the one that is named":  {garden(named), []corev1.Secret{covers("wildcard", "*.ingress.example.com", later)}, "own"},
		"that of the garden":     {garden(absent), []corev1.Secret{covers("wildcard", "*.ingress.example.com", later)}, "wildcard"},
		"the first by name":      {garden(absent), []corev1.Secret{covers("b", "*.ingress.example.com", later), covers("a", "*.ingress.example.com", later)}, "a"},
		"not for another domain": {garden(absent), []corev1.Secret{covers("wildcard", "*.example.com", later)}, ""},
		"not an expired one":     {garden(absent), []corev1.Secret{covers("wildcard", "*.ingress.example.com", now)}, ""},
		"not a broken one":       {garden(absent), []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "wildcard"}}}, ""},
		"none":                   {garden(nil), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Certificate(tc.garden, "discovery.ingress.example.com", tc.certs, now); got != tc.want {
				t.Errorf("Certificate() = %q, want %q", got, tc.want)
			}
		})
	}
	if names := GeneratedCertificate("garden", "keys.example.com").DNSNames; names[0] != "keys.example.com" {
		t.Errorf("the generated certificate is for %v", names)
	}
}

// certificate returns the data of a TLS Secret.
func certificate(t *testing.T, host string, from, until time.Time) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "tls.key": private}
}

// The documents have both keys of a rotation, and nothing private.
func TestWorkloadIdentitySecret(t *testing.T) {
	var bundle []byte
	for range 2 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		bundle = append(bundle, raw...)
	}
	secret, err := WorkloadIdentitySecret("garden", "keys.example.com", &corev1.Secret{Data: map[string][]byte{"bundle.key": bundle}})
	if err != nil {
		t.Fatal(err)
	}
	config, keys := map[string]any{}, struct{ Keys []map[string]string }{}
	if err := json.Unmarshal(secret.Data["openid-configuration.json"], &config); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(secret.Data["jwks.json"], &keys); err != nil {
		t.Fatal(err)
	}
	if secret.Name != "gardener-discovery-server-garden-workload-identity" || len(secret.Data) != 2 ||
		config["issuer"] != "https://keys.example.com/garden/workload-identity/issuer" || len(keys.Keys) != 2 || keys.Keys[0]["d"] != "" {
		t.Errorf("%s: configuration %v, keys %v", secret.Name, config, keys)
	}
	if _, err := WorkloadIdentitySecret("garden", "keys.example.com", &corev1.Secret{}); err == nil {
		t.Error("documents are written without keys")
	}
}
