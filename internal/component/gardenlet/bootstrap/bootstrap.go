// Package bootstrap gives a gardenlet the credentials with which it requests its first client certificate, for gardener-operator, and for the gardenlet
// of a seed whose shoots are seeds.
//
// It reads and deletes the Secrets with kubeconfigs in the cluster of the gardenlet, and writes bootstrap tokens in the garden.
package bootstrap

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

const (
	// kubeconfigKey is the key of Secrets with a kubeconfig.
	kubeconfigKey = "kubeconfig"
	// tokenLife is how long a bootstrap token is valid.
	tokenLife = 24 * time.Hour
	// tokenRest is how long a token has to be valid still to be used again.
	tokenRest = time.Hour
	// RenewalPeriod is how often to deploy a gardenlet that has not registered its Seed yet, so that its token does not expire: each token has two such
	// times in its tokenRest, and one may fail.
	RenewalPeriod = tokenRest / 2
)

// ForeignSecretError is for a Secret that would be deleted or overwritten, and belongs to something else, as it has no kubeconfig.
type ForeignSecretError struct {
	// Field of the configuration names the Secret.
	Field  string
	Secret client.ObjectKey
}

// Error implements error.
func (e *ForeignSecretError) Error() string {
	return fmt.Sprintf("spec.config.gardenClientConnection.%s: Secret %q exists and has no kubeconfig: it is not replaced", e.Field, e.Secret)
}

// State is what the cluster of a gardenlet has of its credentials.
type State struct {
	// Kubeconfig is the Secret with the kubeconfig of the gardenlet. Nil if it does not exist.
	Kubeconfig *corev1.Secret
	// Bootstrapping says that the Secret with the bootstrap kubeconfig exists: the gardenlet has not used it yet.
	Bootstrapping bool
}

// Read reads the credentials of a gardenlet in its cluster.
func Read(ctx context.Context, api client.Reader, garden release.Connection) (State, error) {
	bootstrap, err := own(ctx, api, garden.Bootstrap, "bootstrapKubeconfig")
	if err != nil {
		return State{}, err
	}
	kubeconfig, err := own(ctx, api, garden.Kubeconfig, "kubeconfigSecret")
	return State{Kubeconfig: kubeconfig, Bootstrapping: bootstrap != nil}, err
}

// own returns a Secret with a kubeconfig, or nil if it does not exist.
func own(ctx context.Context, api client.Reader, ref corev1.SecretReference, field string) (*corev1.Secret, error) {
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := api.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", key, err)
	}
	config, err := clientcmd.Load(secret.Data[kubeconfigKey])
	if err != nil || len(config.Clusters) == 0 || len(config.AuthInfos) == 0 {
		return nil, &ForeignSecretError{field, key}
	}
	return secret, nil
}

// Valid says whether the gardenlet has a client certificate that is valid now.
func (s State) Valid(now time.Time) bool {
	_, user := s.current()
	if user == nil {
		return false
	}
	certificates, err := cert.ParseCertsPEM(user.ClientCertificateData)
	return err == nil && now.Before(certificates[0].NotAfter) && !now.Before(certificates[0].NotBefore)
}

// OtherGarden says whether the kubeconfig is for a garden that has none of the CAs in a bundle, such as a former one with the same address. It is not
// known, and false, where one of them has no CAs.
func (s State) OtherGarden(caBundle []byte) bool {
	cluster, _ := s.current()
	if cluster == nil {
		return false
	}
	trusted, err := cert.ParseCertsPEM(cluster.CertificateAuthorityData)
	now, bundleErr := cert.ParseCertsPEM(caBundle)
	return err == nil && bundleErr == nil && !slices.ContainsFunc(now, func(ca *x509.Certificate) bool {
		return slices.ContainsFunc(trusted, ca.Equal)
	})
}

// current returns the cluster and the user of the kubeconfig's current context. They are nil if it has none.
func (s State) current() (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	if s.Kubeconfig == nil {
		return nil, nil
	}
	config, err := clientcmd.Load(s.Kubeconfig.Data[kubeconfigKey])
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return nil, nil
	}
	current := config.Contexts[config.CurrentContext]
	return config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
}

// DeleteKubeconfig deletes the kubeconfig of the gardenlet, if there is one: with it, the gardenlet would not use the bootstrap kubeconfig.
func (s State) DeleteKubeconfig(ctx context.Context, c client.Client) error {
	if s.Kubeconfig == nil {
		return nil
	}
	if err := kube.DeleteUnchanged(ctx, c, s.Kubeconfig); err != nil {
		return fmt.Errorf("delete Secret %q with the kubeconfig of the gardenlet: %w", client.ObjectKeyFromObject(s.Kubeconfig), err)
	}
	return nil
}

// Kubeconfig returns a kubeconfig for the garden with a token.
func Kubeconfig(address string, caBundle []byte, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["garden"] = &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: caBundle}
	config.AuthInfos["gardenlet"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["garden"] = &clientcmdapi.Context{Cluster: "garden", AuthInfo: "gardenlet"}
	config.CurrentContext = "garden"
	return clientcmd.Write(*config)
}

// CABundle returns the CA bundle of a cluster.
func CABundle(config *rest.Config) ([]byte, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read the CA bundle of the garden: %w", err)
	}
	return config.CAData, nil
}

// Token is the bootstrap token of a gardenlet. There is one for each name.
type Token struct {
	// Namespace and Name are those of the Gardenlet or ManagedSeed.
	Namespace, Name string
	// Description says in the token whose it is.
	Description string
}

func (t Token) key() client.ObjectKey {
	return client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: graph.BootstrapTokenName(t.Namespace, t.Name)}
}

// Ensure returns the token. It is created in the garden, unless there is one that is valid long enough.
func (t Token) Ensure(ctx context.Context, api client.Reader, garden client.Client, now time.Time) (string, error) {
	const idKey, secretKey, expirationKey = "token-id", "token-secret", "expiration"
	id, key := graph.TokenID(t.Namespace, t.Name), t.key()
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := api.Get(ctx, key, token)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read bootstrap token %q: %w", key, err)
	}
	exists := err == nil
	if exists {
		if got := string(token.Data[bootstraptoken.DescriptionKey]); got != t.Description {
			return "", fmt.Errorf("bootstrap token %q is not for the gardenlet of seed %q", key, t.Name)
		}
		expiration, err := time.Parse(time.RFC3339, string(token.Data[expirationKey]))
		if err == nil && expiration.After(now.Add(tokenRest)) && len(token.Data[secretKey]) > 0 {
			return id + "." + string(token.Data[secretKey]), nil
		}
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	secret := hex.EncodeToString(random)
	token.Type = corev1.SecretTypeBootstrapToken
	token.Data = map[string][]byte{
		idKey: []byte(id), secretKey: []byte(secret), bootstraptoken.DescriptionKey: []byte(t.Description),
		expirationKey: []byte(now.Add(tokenLife).UTC().Format(time.RFC3339)), "usage-bootstrap-authentication": []byte("true"),
		// Gardenlets create tokens with all usages only, as the original does.
		"usage-bootstrap-signing": []byte("true"),
	}
	write := func() error { return garden.Create(ctx, token) }
	if exists {
		write = func() error { return garden.Update(ctx, token) }
	}
	if err := write(); err != nil {
		return "", fmt.Errorf("write bootstrap token %q: %w", key, err)
	}
	return id + "." + secret, nil
}

// Delete deletes the token of a gardenlet that has its certificate. One that is for something else stays.
func (t Token) Delete(ctx context.Context, api client.Reader, garden client.Client) error {
	token, key := &corev1.Secret{}, t.key()
	if err := api.Get(ctx, key, token); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read bootstrap token %q: %w", key, err)
	}
	if string(token.Data[bootstraptoken.DescriptionKey]) != t.Description {
		return nil
	}
	if err := kube.DeleteUnchanged(ctx, garden, token); err != nil {
		return fmt.Errorf("delete bootstrap token %q: %w", key, err)
	}
	return nil
}
