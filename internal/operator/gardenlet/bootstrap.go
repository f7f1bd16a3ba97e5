package gardenlet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

const (
	// tokenLife is how long a bootstrap token is valid.
	tokenLife = 24 * time.Hour
	// tokenRest is how long a token has to be valid still to be used again.
	tokenRest = time.Hour
)

// bootstrap returns the kubeconfig with which a gardenlet requests its certificate, or nil if it has a valid one. A kubeconfig that expired or that
// is to be renewed is deleted.
func (r *reconciler) bootstrap(ctx context.Context, t *target, object *seedmanagementv1alpha1.Gardenlet, garden release.Connection) ([]byte, error) {
	if err := t.ownKubeconfig(ctx, garden.Bootstrap, "bootstrapKubeconfig"); err != nil {
		return nil, err
	}
	if err := t.ownKubeconfig(ctx, garden.Kubeconfig, "kubeconfigSecret"); err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: garden.Kubeconfig.Namespace, Name: garden.Kubeconfig.Name}}
	err := t.api.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	switch {
	case err == nil:
		renew := object.Annotations[constants.GardenerOperation] == constants.GardenerOperationRenewKubeconfig
		if !renew && validKubeconfig(secret.Data[kubeconfigKey], r.Clock.Now()) {
			return nil, nil
		}
		if err := deleteSame(ctx, t.client, secret); err != nil {
			return nil, t.foreign(fmt.Errorf("delete Secret %q with the kubeconfig of the gardenlet: %w", client.ObjectKeyFromObject(secret), err))
		}
	case !apierrors.IsNotFound(err):
		return nil, t.foreign(fmt.Errorf("read Secret %q with the kubeconfig of the gardenlet: %w", client.ObjectKeyFromObject(secret), err))
	}
	ca, err := caBundle(r.Virtual.GetConfig())
	if err != nil {
		return nil, err
	}
	token, err := r.token(ctx, object)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["garden"] = &clientcmdapi.Cluster{Server: garden.Address, CertificateAuthorityData: ca}
	config.AuthInfos["gardenlet"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["garden"] = &clientcmdapi.Context{Cluster: "garden", AuthInfo: "gardenlet"}
	config.CurrentContext = "garden"
	return clientcmd.Write(*config)
}

// ownKubeconfig returns an error if a Secret, which will be deleted or overwritten, exists and has no kubeconfig: it belongs to something else.
func (t *target) ownKubeconfig(ctx context.Context, ref corev1.SecretReference, field string) error {
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if err := t.api.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return t.foreign(fmt.Errorf("read Secret %q: %w", key, err))
	}
	config, err := clientcmd.Load(secret.Data[kubeconfigKey])
	if err != nil || len(config.Clusters) == 0 || len(config.AuthInfos) == 0 {
		return reconcile.TerminalError(fmt.Errorf("spec.config.gardenClientConnection.%s: Secret %q exists and has no kubeconfig: it is not replaced", field, key))
	}
	return nil
}

// validKubeconfig says whether a kubeconfig has a client certificate that is valid now.
func validKubeconfig(kubeconfig []byte, now time.Time) bool {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return false
	}
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	if user == nil {
		return false
	}
	block, _ := pem.Decode(user.ClientCertificateData)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && now.Before(certificate.NotAfter) && !now.Before(certificate.NotBefore)
}

// token returns the bootstrap token for a gardenlet. It is created in the virtual garden, unless there is one that is valid long enough.
func (r *reconciler) token(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) (string, error) {
	const idKey, secretKey, expirationKey = "token-id", "token-secret", "expiration"
	id, description := tokenID(object), bootstraptoken.ForSeed(object.Name)
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: graph.BootstrapTokenPrefix + id}}
	key := client.ObjectKeyFromObject(token)
	err := r.virtualAPI.Get(ctx, key, token)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read bootstrap token %q: %w", key, err)
	}
	exists := err == nil
	if exists {
		if got := string(token.Data[bootstraptoken.DescriptionKey]); got != description {
			return "", fmt.Errorf("bootstrap token %q is not for the gardenlet of seed %q", key, object.Name)
		}
		expiration, err := time.Parse(time.RFC3339, string(token.Data[expirationKey]))
		if err == nil && expiration.After(r.Clock.Now().Add(tokenRest)) && len(token.Data[secretKey]) > 0 {
			return id + "." + string(token.Data[secretKey]), nil
		}
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	secret := hex.EncodeToString(random)
	token.Type = corev1.SecretTypeBootstrapToken
	token.Data = map[string][]byte{
		idKey: []byte(id), secretKey: []byte(secret), bootstraptoken.DescriptionKey: []byte(description),
		expirationKey: []byte(r.Clock.Now().Add(tokenLife).UTC().Format(time.RFC3339)), "usage-bootstrap-authentication": []byte("true"),
	}
	write := func() error { return r.virtualCache.Create(ctx, token) }
	if exists {
		write = func() error { return r.virtualCache.Update(ctx, token) }
	}
	if err := write(); err != nil {
		return "", fmt.Errorf("write bootstrap token %q: %w", key, err)
	}
	return id + "." + secret, nil
}

// deleteToken deletes the bootstrap token of a gardenlet that has its certificate. One that is for something else stays.
func (r *reconciler) deleteToken(ctx context.Context, object *seedmanagementv1alpha1.Gardenlet) error {
	token, key := &corev1.Secret{}, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: graph.BootstrapTokenPrefix + tokenID(object)}
	if err := r.virtualAPI.Get(ctx, key, token); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read bootstrap token %q: %w", key, err)
	}
	if string(token.Data[bootstraptoken.DescriptionKey]) != bootstraptoken.ForSeed(object.Name) {
		return nil
	}
	if err := deleteSame(ctx, r.virtualCache, token); err != nil {
		return fmt.Errorf("delete bootstrap token %q: %w", key, err)
	}
	return nil
}

// tokenID returns the ID of the bootstrap token for a gardenlet. It is always the same, so that each has one token only.
func tokenID(object *seedmanagementv1alpha1.Gardenlet) string {
	sum := sha256.Sum256([]byte(object.Namespace + "--" + object.Name))
	return hex.EncodeToString(sum[:3])
}
