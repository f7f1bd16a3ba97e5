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
	"gardener.cloud/gardener/internal/kube"
)

// Every namespace has this ConfigMap with the CA bundle of the API server. It is read in a namespace that all authenticated users may read.
const (
	rootCAConfigMap = "kube-root-ca.crt"
	rootCAKey       = "ca.crt"
)

// Validity is the time in which a client certificate is valid.
type Validity struct{ NotBefore, NotAfter time.Time }

// expired is false without a certificate.
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

// renew requests a certificate with the current access, and writes it to the Secret.
func (v Values) renew(ctx context.Context, old *Access) (*Access, error) {
	pair, err := request(ctx, old.Config, v.SeedName, v.Connection.KubeconfigValidity.Validity)
	if err != nil {
		return nil, err
	}
	server := old.Config.Host
	if address := v.Connection.GardenClusterAddress; address != nil && *address != "" {
		server = *address
	}
	caBundle, err := readCABundle(ctx, old.Config, server, pair)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := newKubeconfig(server, old.Config.TLSClientConfig, caBundle, pair)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("decode new kubeconfig: %w", err)
	}
	access, err := newAccess(config)
	if err != nil {
		return nil, err
	}
	return access, v.store(ctx, kubeconfig)
}

// store writes a kubeconfig to the Secret, and removes the annotation that requested it.
func (v Values) store(ctx context.Context, kubeconfig []byte) error {
	key := v.secretKey(v.Connection.KubeconfigSecret)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	err := v.SeedAPI.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Data:       map[string][]byte{Kubeconfig: kubeconfig},
		}
		if err = v.SeedAPI.Create(ctx, secret); !apierrors.IsAlreadyExists(err) {
			break
		}
		// Another replica has created it, with another valid certificate.
		return nil
	case err == nil:
		before := secret.DeepCopy()
		secret.Data = map[string][]byte{Kubeconfig: kubeconfig}
		if renewalRequested(secret) {
			delete(secret.Annotations, constants.GardenerOperation)
		}
		err = v.SeedAPI.Patch(ctx, secret, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("write Secret %q: %w", key, err)
	}
	return nil
}

// RequestRenewal requests a new kubeconfig by the annotation of its Secret. Nothing is requested if the Secret does not exist.
func RequestRenewal(ctx context.Context, seedAPI client.Client, ref corev1.SecretReference) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	return client.IgnoreNotFound(kube.PatchMetadata(ctx, seedAPI, secret, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, constants.KubeconfigSecretOperationRenew)
	}))
}

// renewalRequested is whether the annotation of the Secret requests a new certificate.
func renewalRequested(secret *corev1.Secret) bool {
	return secret.Annotations[constants.GardenerOperation] == constants.KubeconfigSecretOperationRenew
}

// newKubeconfig returns a kubeconfig for a server with a client certificate. Without a CA bundle, it has that of the old configuration.
func newKubeconfig(server string, old rest.TLSClientConfig, caBundle []byte, pair *keyPair) ([]byte, error) {
	if caBundle == nil {
		caBundle = old.CAData
	}
	if len(caBundle) == 0 && old.CAFile != "" {
		var err error
		if caBundle, err = os.ReadFile(old.CAFile); err != nil {
			return nil, err
		}
	}
	const cluster, user = "garden", "gardenlet"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server: server, CertificateAuthorityData: caBundle, TLSServerName: old.ServerName, InsecureSkipTLSVerify: old.Insecure && len(caBundle) == 0,
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	return clientcmd.Write(*config)
}

// readCABundle reads the CA bundle of the garden with a new certificate. During a CA rotation it has two certificates. It is nil if the current
// CA bundle is to be kept: the garden does not publish its own, or another CA has signed the certificate of the address.
func readCABundle(ctx context.Context, garden *rest.Config, server string, pair *keyPair) ([]byte, error) {
	if len(garden.CAData) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config := rest.AnonymousClientConfig(garden)
	config.Host, config.CertData, config.KeyData = server, pair.cert, pair.key
	bundle, err := readRootCA(ctx, config)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		logf.FromContext(ctx).V(1).Info("Keeping the CA bundle for the garden", "reason", err.Error())
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	config.CAData = bundle
	if _, err := readRootCA(ctx, config); err != nil {
		logf.FromContext(ctx).Info("Keeping the CA bundle for the garden, as the published one is not valid for its address", "reason", err.Error())
		return nil, nil //nolint:nilerr // it decides which CA bundle is used
	}
	return bundle, nil
}

// readRootCA reads the CA bundle that Kubernetes publishes.
func readRootCA(ctx context.Context, config *rest.Config) ([]byte, error) {
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
