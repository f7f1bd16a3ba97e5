package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Every namespace has this ConfigMap with the authority of its API server. That of the namespace that everybody may read is used.
const (
	rootCAConfigMap = "kube-root-ca.crt"
	rootCAKey       = "ca.crt"
)

// Validity is when a client certificate begins and ends.
type Validity struct{ NotBefore, NotAfter time.Time }

// expired is false for what does not expire.
func (v *Validity) expired(now time.Time) bool { return v != nil && !now.Before(v.NotAfter) }

// newAccess reads the certificate of a configuration.
func newAccess(config *rest.Config) (*Access, error) {
	access := &Access{Config: config}
	if len(config.CertData) == 0 && config.CertFile == "" {
		return access, nil
	}
	pair, err := clientPair(config)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	access.Certificate = &Validity{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}
	return access, nil
}

func clientPair(config *rest.Config) (tls.Certificate, error) {
	if len(config.CertData) > 0 {
		return tls.X509KeyPair(config.CertData, config.KeyData)
	}
	return tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
}

// renew asks for a certificate with the access that there is, and keeps it in the Secret.
func (v Values) renew(ctx context.Context, old *Access) (*Access, error) {
	pair, err := request(ctx, old.Config, v.SeedName, v.Connection.KubeconfigValidity.Validity)
	if err != nil {
		return nil, err
	}
	server := old.Config.Host
	if address := v.Connection.GardenClusterAddress; address != nil && *address != "" {
		server = *address
	}
	ca, err := authority(ctx, old.Config, server, pair)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := newKubeconfig(server, old.Config.TLSClientConfig, ca, pair)
	if err != nil {
		return nil, fmt.Errorf("make kubeconfig: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read own kubeconfig: %w", err)
	}
	access, err := newAccess(config)
	if err != nil {
		return nil, err
	}
	return access, v.store(ctx, kubeconfig)
}

// store writes a kubeconfig into the Secret, and takes the wish for it off.
func (v Values) store(ctx context.Context, kubeconfig []byte) error {
	key := v.secretKey(v.Connection.KubeconfigSecret)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	err := v.SeedClient.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Data:       map[string][]byte{Kubeconfig: kubeconfig},
		}
		if err = v.SeedClient.Create(ctx, secret); !apierrors.IsAlreadyExists(err) {
			break
		}
		// Another replica was faster. Its certificate is as good as ours.
		return nil
	case err == nil:
		before := secret.DeepCopy()
		secret.Data = map[string][]byte{Kubeconfig: kubeconfig}
		if wished(secret) {
			delete(secret.Annotations, constants.GardenerOperation)
		}
		err = v.SeedClient.Patch(ctx, secret, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("write Secret %q: %w", key, err)
	}
	return nil
}

// wished tells whether somebody asked for a new certificate.
func wished(secret *corev1.Secret) bool {
	return secret.Annotations[constants.GardenerOperation] == constants.KubeconfigSecretOperationRenew
}

// newKubeconfig is for a server, with what is known about its certificate and with our own.
func newKubeconfig(server string, old rest.TLSClientConfig, ca []byte, pair *keyPair) ([]byte, error) {
	if ca == nil {
		ca = old.CAData
	}
	if len(ca) == 0 && old.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(old.CAFile); err != nil {
			return nil, err
		}
	}
	const cluster, user = "garden", "gardenlet"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server: server, CertificateAuthorityData: ca, TLSServerName: old.ServerName, InsecureSkipTLSVerify: old.Insecure && len(ca) == 0,
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	return clientcmd.Write(*config)
}

// authority reads, with a fresh certificate, which authority the garden has now. During a rotation it has two of them. Nil if the one that
// it was reached with stays: the garden does not tell, or it is reached at an address that somebody else signed for.
func authority(ctx context.Context, garden *rest.Config, server string, pair *keyPair) ([]byte, error) {
	if len(garden.CAData) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config := rest.AnonymousClientConfig(garden)
	config.Host, config.CertData, config.KeyData = server, pair.cert, pair.key
	bundle, err := readAuthority(ctx, config)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		logf.FromContext(ctx).V(1).Info("Keeping certificate authority of the garden", "reason", err.Error())
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	config.CAData = bundle
	if _, err := readAuthority(ctx, config); err != nil {
		logf.FromContext(ctx).Info("Keeping certificate authority of the garden, as its own one does not fit its address", "reason", err.Error())
		return nil, nil //nolint:nilerr // it only tells which authority fits
	}
	return bundle, nil
}

func readAuthority(ctx context.Context, config *rest.Config) ([]byte, error) {
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the garden: %w", err)
	}
	configMap := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: constants.GardenerSystemPublicNamespace, Name: rootCAConfigMap}
	if err := c.Get(ctx, key, configMap); err != nil {
		return nil, fmt.Errorf("read ConfigMap %q: %w", key, err)
	}
	return []byte(configMap.Data[rootCAKey]), nil
}
