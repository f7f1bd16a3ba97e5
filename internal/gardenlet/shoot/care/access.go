package care

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Access reaches the API server of a shoot. It has no cache.
type Access interface {
	client.Client
	// Healthz returns what is wrong with the API server, or nil.
	Healthz(ctx context.Context) error
	// ReachNode returns why the API server does not get through to the kubelet of a node, or nil if it does.
	ReachNode(ctx context.Context, name string) error
	// Close ends its connections.
	Close()
}

// Connector returns what connects to shoots with objects of a scheme.
func Connector(scheme *runtime.Scheme, userAgent string) func(kubeconfig []byte) (Access, error) {
	return func(kubeconfig []byte) (Access, error) {
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		config = rest.AddUserAgent(config, userAgent)
		config.QPS = -1 // the looks are limited, not the requests of one of them
		// With a function of its own, the transport is not kept by client-go for good, but goes with the access.
		config.Proxy = http.ProxyFromEnvironment
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, err
		}
		shoot, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: httpClient})
		if err != nil {
			return nil, err
		}
		config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, serializer.NewCodecFactory(scheme)
		raw, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
		return &access{shoot, raw, httpClient}, err
	}
}

type access struct {
	client.Client
	rest rest.Interface
	http *http.Client
}

// Healthz implements Access.
func (a *access) Healthz(ctx context.Context) error {
	if err := a.rest.Get().AbsPath("/healthz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("API server /healthz endpoint does not respond with success: %w", err)
	}
	return nil
}

// ReachNode implements Access. Whatever the kubelet answers, it has been reached. Answers of the API server itself are Statuses.
func (a *access) ReachNode(ctx context.Context, name string) error {
	err := a.rest.Get().AbsPath("/api/v1/nodes", name, "proxy", "healthz").Do(ctx).Error()
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Status().Code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return err
	}
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil
	}
	return err
}

// Close implements Access.
func (a *access) Close() { a.http.CloseIdleConnections() }

// connections keeps one access per shoot.
type connections struct {
	connect func(kubeconfig []byte) (Access, error)

	mu      sync.Mutex
	byShoot map[types.NamespacedName]connection
}

// connection is an access that was made from a Secret, which never changes.
type connection struct {
	secret types.UID
	access Access
}

var errUnusable = errors.New("the access to the API server is not usable")

// get returns the access to a shoot. A kubeconfig is read only for a Secret from which there is none yet.
func (c *connections) get(shoot types.NamespacedName, secret types.UID, kubeconfig func() ([]byte, error)) (Access, error) {
	c.mu.Lock()
	known := c.byShoot[shoot]
	c.mu.Unlock()
	if known.access != nil && known.secret == secret {
		return known.access, nil
	}
	data, err := kubeconfig()
	if err != nil {
		return nil, err
	}
	access, err := c.connect(data)
	if err != nil {
		return nil, errUnusable // the error may quote credentials
	}
	c.drop(shoot)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byShoot == nil {
		c.byShoot = map[types.NamespacedName]connection{}
	}
	c.byShoot[shoot] = connection{secret, access}
	return access, nil
}

// drop ends the access to a shoot that is gone, or sleeps.
func (c *connections) drop(shoot types.NamespacedName) {
	c.mu.Lock()
	known := c.byShoot[shoot]
	delete(c.byShoot, shoot)
	c.mu.Unlock()
	if known.access != nil {
		known.access.Close()
	}
}
