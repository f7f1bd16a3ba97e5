package attack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/env"
)

// A name in the garden is no name in a shoot: the service account of a garden, or a user that an identity provider lets choose the name,
// must not be one that the shoot's RBAC knows. Nor must credentials be sent to an address that is not the kube-apiserver's.
func TestIdentityInKubeconfigs(t *testing.T) {
	g := start(t)
	shoot := newShoot("victim")
	g.create(t, shoot)
	env.EditStatus(t, g.c, shoot, func(s *corev1beta1.Shoot) {
		for _, name := range []string{"external", "internal", "unmanaged", "service-account-issuer", "wildcard-tls-seed-bound", "attacker"} {
			s.Status.AdvertisedAddresses = append(s.Status.AdvertisedAddresses, corev1beta1.ShootAdvertisedAddress{Name: name, URL: "https://" + name + ".example.com"})
		}
	})
	certificate, key := clientCA(t)
	g.create(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "victim.ca-cluster"}, Data: map[string]string{"ca.crt": string(certificate)}},
		&corev1beta1.InternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "victim.ca-client"}, Data: map[string][]byte{"ca.crt": certificate, "ca.key": key},
		},
	)
	for _, name := range []string{
		"system:serviceaccount:kube-system:clusterrole-aggregation-controller", "system:kube-controller-manager", "jane@example.com",
	} {
		t.Run(name, func(t *testing.T) {
			config := rest.CopyConfig(g.Config)
			config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
			c, err := client.New(config, client.Options{Scheme: g.Scheme})
			if err != nil {
				t.Fatal(err)
			}
			admin, viewer := &authenticationv1alpha1.AdminKubeconfigRequest{}, &authenticationv1alpha1.ViewerKubeconfigRequest{}
			if err := c.SubResource("adminkubeconfig").Create(t.Context(), shoot, admin); err != nil {
				t.Fatal(err)
			}
			if err := c.SubResource("viewerkubeconfig").Create(t.Context(), shoot, viewer); err != nil {
				t.Fatal(err)
			}
			for group, data := range map[string][]byte{
				"gardener.cloud:system:admins": admin.Status.Kubeconfig, "gardener.cloud:system:viewers": viewer.Status.Kubeconfig,
			} {
				checkIdentity(t, data, "gardener.cloud:user:"+name, group)
			}
		})
	}
}

func checkIdentity(t *testing.T, kubeconfig []byte, user, group string) {
	t.Helper()
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		certificates, err := cert.ParseCertsPEM(info.ClientCertificateData)
		if err != nil {
			t.Fatal(err)
		}
		if got := certificates[0].Subject; got.CommonName != user || !slices.Equal(got.Organization, []string{group}) {
			t.Errorf("the certificate is of user %q and groups %q, want %q and %q", got.CommonName, got.Organization, user, group)
		}
	}
	var servers []string
	for _, cluster := range config.Clusters {
		servers = append(servers, cluster.Server)
	}
	slices.Sort(servers)
	if diff := cmp.Diff([]string{"https://external.example.com", "https://internal.example.com", "https://unmanaged.example.com"}, servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// clientCA returns the CA of a shoot's clients.
func clientCA(t *testing.T) (certificatePEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-client"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
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
