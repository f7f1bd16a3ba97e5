// Package credentials obtains and renews the credentials of a gardenlet for the garden.
//
// A gardenlet starts with the kubeconfig in a Secret of its seed. If there is none yet, it requests a client certificate with a bootstrap
// kubeconfig, which is in a Secret too, writes a kubeconfig with the certificate to the first Secret, and deletes the second. It requests a
// new certificate before the old one expires, or when an annotation of the Secret requests it. Then the process ends, and uses the new
// certificate after its restart. Without these Secrets it uses the kubeconfig file of its configuration.
//
// It reads and writes these two Secrets in the seed, and writes CertificateSigningRequests in the garden. Source: concepts.txt,
// gardenlet, "TLS Bootstrapping" and "gardenlet Certificate Rotation".
package credentials

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/process"
)

// Kubeconfig is the key of a kubeconfig in a Secret.
const Kubeconfig = "kubeconfig"

// requestTimeout is the end of one request to an API server.
const requestTimeout = 30 * time.Second

// Values are what Obtain and Keep work with.
type Values struct {
	// SeedName is the name of the seed, which the certificate is for.
	SeedName string
	// SeedAPI is the API server of the seed, for the Secrets.
	SeedAPI client.WithWatch
	// Connection is the configuration. It is defaulted.
	Connection *gardenletconfigv1alpha1.GardenClientConnection
	// Clock is for the expiry and renewal of certificates.
	Clock clock.WithDelayedExecution
}

// Access is the connection of a gardenlet to the garden.
type Access struct {
	// Config is for clients, with the rate limits of the configuration.
	Config *rest.Config
	// Certificate is the validity of the client certificate. Nil without one, for instance with a token.
	Certificate *Validity
}

// Obtain returns the access, and requests a certificate first if there is none yet. The kubeconfig in the Secret takes precedence, then the
// bootstrap kubeconfig, then the file.
func Obtain(ctx context.Context, v Values) (*Access, error) {
	log := logf.FromContext(ctx)
	stored, err := v.stored(ctx)
	if err != nil {
		return nil, err
	}
	if stored != nil && !stored.Certificate.expired(v.Clock.Now()) {
		return v.limited(stored), nil
	}
	bootstrap, err := v.bootstrap(ctx)
	switch {
	case err != nil:
		return nil, err
	case bootstrap != nil:
		log.Info("Requesting client certificate with the bootstrap kubeconfig", "seed", v.SeedName)
		access, err := v.renew(ctx, bootstrap)
		if err != nil {
			return nil, fmt.Errorf("bootstrap: %w", err)
		}
		return v.limited(access), v.deleteBootstrap(ctx)
	case stored != nil:
		return nil, fmt.Errorf("client certificate in Secret %q expired at %s; create a bootstrap kubeconfig in the Secret of "+
			"gardenClientConnection.bootstrapKubeconfig to get a new one",
			v.secretKey(v.Connection.KubeconfigSecret), stored.Certificate.NotAfter.UTC().Format(time.RFC3339))
	case v.Connection.Kubeconfig == "":
		return nil, errors.New("no credentials for the garden are configured: there is no kubeconfig in the Secrets of gardenClientConnection.kubeconfigSecret " +
			"and gardenClientConnection.bootstrapKubeconfig, and gardenClientConnection.kubeconfig names no file")
	}
	config, err := clientcmd.BuildConfigFromFlags("", v.Connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", v.Connection.Kubeconfig, err)
	}
	access, err := newAccess(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", v.Connection.Kubeconfig, err)
	}
	return v.limited(access), nil
}

// limited sets the rate limits and content types of the configuration.
func (v Values) limited(access *Access) *Access {
	process.SetConnection(v.Connection.ClientConnectionConfiguration)(access.Config)
	return access
}

// stored returns the access in the Secret that the gardenlet writes, or nil if there is none yet.
func (v Values) stored(ctx context.Context) (*Access, error) {
	return v.fromSecret(ctx, v.Connection.KubeconfigSecret)
}

// bootstrap returns the access with the bootstrap kubeconfig, or nil if there is none.
func (v Values) bootstrap(ctx context.Context) (*Access, error) {
	if v.Connection.BootstrapKubeconfig != nil && v.Connection.KubeconfigSecret == nil {
		return nil, errors.New("gardenClientConnection.bootstrapKubeconfig needs gardenClientConnection.kubeconfigSecret, in which the certificate is stored")
	}
	return v.fromSecret(ctx, v.Connection.BootstrapKubeconfig)
}

// fromSecret returns the access in a Secret, or nil if the Secret does not exist or has no kubeconfig.
func (v Values) fromSecret(ctx context.Context, ref *corev1.SecretReference) (*Access, error) {
	if ref == nil {
		return nil, nil //nolint:nilnil // documented
	}
	secret, key := &corev1.Secret{}, v.secretKey(ref)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := v.SeedAPI.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // documented
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", key, err)
	}
	if len(secret.Data[Kubeconfig]) == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[Kubeconfig])
	if err != nil {
		return nil, fmt.Errorf("key %q of Secret %q is not a kubeconfig: %w", Kubeconfig, key, err)
	}
	access, err := newAccess(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig in Secret %q: %w", key, err)
	}
	return access, nil
}

// secretKey is where a Secret is. Without a namespace it is the one of the gardenlet.
func (Values) secretKey(ref *corev1.SecretReference) client.ObjectKey {
	namespace := ref.Namespace
	if namespace == "" {
		namespace = constants.GardenNamespace
	}
	return client.ObjectKey{Namespace: namespace, Name: ref.Name}
}

func (v Values) deleteBootstrap(ctx context.Context) error {
	key := v.secretKey(v.Connection.BootstrapKubeconfig)
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = key.Namespace, key.Name
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := v.SeedAPI.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete bootstrap Secret %q: %w", key, err)
	}
	return nil
}
