package gardenerdiscoveryserver

import (
	"cmp"
	"crypto/tls"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/pkg/secrets"
)

// Host returns the host of all issuers of a garden: its own domain, or "discovery" below the first ingress domain. Issuers of WorkloadIdentity
// tokens have it also if the server is not deployed. It is empty if there is neither.
func Host(garden *operatorv1alpha1.Garden) string {
	if config := garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer; config != nil && config.Domain != nil {
		return config.Domain.Name
	}
	if domains := garden.Spec.RuntimeCluster.Ingress.Domains; len(domains) > 0 {
		return "discovery." + domains[0].Name
	}
	return ""
}

// Certificate returns the name of the Secret with the serving certificate for a host: the one that the Garden names, else the first by name of the
// Secrets with certificates of the garden (label gardener.cloud/role=garden-cert) that is valid for the host at that time. It is empty if the
// certificate has to be generated, see GeneratedCertificate.
func Certificate(garden *operatorv1alpha1.Garden, host string, gardenCerts []corev1.Secret, now time.Time) string {
	if config := garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer; config != nil && config.TLSSecretName != nil {
		return *config.TLSSecretName
	}
	for _, secret := range slices.SortedFunc(slices.Values(gardenCerts), func(a, b corev1.Secret) int { return cmp.Compare(a.Name, b.Name) }) {
		pair, err := tls.X509KeyPair(secret.Data[secrets.DataKeyCertificate], secret.Data[secrets.DataKeyPrivateKey])
		if err == nil && pair.Leaf.VerifyHostname(host) == nil && !now.Before(pair.Leaf.NotBefore) && now.Before(pair.Leaf.NotAfter) {
			return secret.Name
		}
	}
	return ""
}

// GeneratedCertificate describes a certificate for the secrets manager. Its CA is ca-gardener, which third parties have to be given.
func GeneratedCertificate(namespace, host string) *secrets.Certificate {
	return &secrets.Certificate{
		Name: Name + "-tls", CommonName: Name, DNSNames: append([]string{host}, workload.DNSNames(Name, namespace)...), Usage: secrets.ServerCert, WithoutCA: true,
	}
}

// WorkloadIdentitySecret renders the Secret with the documents of the issuer of WorkloadIdentity tokens, from the Secret with all valid signing keys:
// the bundle of the credential gardener-apiserver-workload-identity-signing-key.
func WorkloadIdentitySecret(namespace, host string, signingKeys *corev1.Secret) (*corev1.Secret, error) {
	keys, err := serviceaccountkey.PublicOfBundle(signingKeys)
	if err != nil {
		return nil, err
	}
	config, keySet, err := serviceaccountkey.IssuerDocuments(issuer.WorkloadIdentityURL(host), keys)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: WorkloadIdentitySecretName, Labels: gardenerprocess.Values{Role: "discovery-server"}.Workload().Labels,
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{openIDConfigKey: config, keySetKey: keySet},
	}, nil
}
