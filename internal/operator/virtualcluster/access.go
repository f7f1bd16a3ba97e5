// Package virtualcluster connects to the virtual garden with the kubeconfig in the Secret "garden/gardener-internal" of the runtime cluster.
//
// Its token expires and is renewed by gardener-resource-manager. Connections use the newest one that they were given: they last longer than a
// token.
package virtualcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// SecretKey names the Secret with the kubeconfig, in the runtime cluster.
var SecretKey = client.ObjectKey{Namespace: constants.GardenNamespace, Name: constants.SecretNameGardenerInternal}

// ErrNoAccess says that the virtual garden has no usable kubeconfig yet, or not any more.
var ErrNoAccess = errors.New("there is no access to the virtual garden")

// ErrNoSecret is ErrNoAccess as there is no Secret for the kubeconfig: the virtual garden was never there, or is not any more.
var ErrNoSecret = fmt.Errorf("%w: Secret %q not found", ErrNoAccess, SecretKey)

// Access is how the virtual garden is reached.
type Access struct {
	// Config has the address, and no token: that is added to each request.
	Config *rest.Config
	// Key changes if anything but the token does.
	Key string

	token atomic.Pointer[string]
}

// Of returns the access of a Secret. The functions change the configuration further. Errors do not quote the kubeconfig.
func Of(secret *corev1.Secret, set ...func(*rest.Config)) (*Access, error) {
	config, token, err := parse(secret)
	if err != nil {
		return nil, err
	}
	a := &Access{Config: config, Key: key(config)}
	a.token.Store(&token)
	for _, s := range set {
		s(config)
	}
	// With a function, client-go does not share the transport with other clients, so that its idle connections end with it.
	config.Proxy = http.ProxyFromEnvironment
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &authenticated{access: a, next: next} })
	return a, nil
}

// Renew takes over the token of a Secret. It returns false if more than the token has changed, so that a new Access is needed.
func (a *Access) Renew(secret *corev1.Secret) (bool, error) {
	config, token, err := parse(secret)
	if err != nil {
		return false, err
	}
	if key(config) != a.Key {
		return false, nil
	}
	a.token.Store(&token)
	return true, nil
}

// parse returns the configuration of a Secret without its token, and the token.
func parse(secret *corev1.Secret) (*rest.Config, string, error) {
	refuse := func(reason string) (*rest.Config, string, error) {
		return nil, "", fmt.Errorf("%w: Secret %q %s", ErrNoAccess, client.ObjectKeyFromObject(secret), reason)
	}
	if secret.DeletionTimestamp != nil {
		return refuse("is being deleted")
	}
	if secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp] == "" {
		return refuse("has no token yet")
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[resourcesv1alpha1.DataKeyKubeconfig])
	if err != nil {
		return refuse("has no valid kubeconfig") // the error itself may quote credentials
	}
	token := config.BearerToken
	if token == "" {
		return refuse("has a kubeconfig without a token")
	}
	config.BearerToken = ""
	return config, token, nil
}

// key is a checksum of address and CA bundle.
func key(config *rest.Config) string {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(config.Host), config.CAData, []byte(config.ServerName)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// authenticated adds the token to requests.
type authenticated struct {
	access *Access
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *authenticated) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context()) // a RoundTripper must not change it
	request.Header.Set("Authorization", "Bearer "+*t.access.token.Load())
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (t *authenticated) WrappedRoundTripper() http.RoundTripper { return t.next }

// Read returns the access to the virtual garden. The error is ErrNoAccess if there is none, and ErrNoSecret if there
// is not even a Secret.
func Read(ctx context.Context, runtime client.Reader, set ...func(*rest.Config)) (*Access, error) {
	secret := &corev1.Secret{}
	if err := runtime.Get(ctx, SecretKey, secret); apierrors.IsNotFound(err) {
		return nil, ErrNoSecret
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", SecretKey, err)
	}
	return Of(secret, set...)
}

// Limited bounds the time of all requests of a configuration, for clients that are used by webhooks and checks.
func Limited(timeout time.Duration) func(*rest.Config) {
	return func(config *rest.Config) { config.Timeout = timeout }
}
