package care

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/decoded"
	"gardener.cloud/gardener/internal/shoot/access"
)

// maxAnswer is how many bytes an answer to a health check may have. A node of a user may send any bytes, and an error is decoded as the object that it says
// it is: a list of millions of empty nodes, in 128 MiB, takes dozens of gigabytes.
const maxAnswer = 64 << 10

// ShootClient is a client for the API server of a shoot, without a cache.
type ShootClient interface {
	client.Client
	// Healthz returns why the API server is not available, or nil if it is.
	Healthz(ctx context.Context) error
	// ReachNode returns why the API server does not reach the kubelet of a node, or nil if it does.
	ReachNode(ctx context.Context, name string) error
	// Close closes its connections.
	Close()
}

// Connector returns a function that returns a client for the shoot of a kubeconfig, with the types of a scheme, and with settings of the
// connection.
func Connector(scheme *runtime.Scheme, userAgent string, set func(*rest.Config)) func(kubeconfig []byte) (ShootClient, error) {
	return func(kubeconfig []byte) (ShootClient, error) {
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		config = rest.AddUserAgent(config, userAgent)
		set(config)
		decoded.LimitResponses(config, scheme)
		// With a function, client-go does not cache the transport, so that Close can close its connections.
		config.Proxy = http.ProxyFromEnvironment
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, err
		}
		// A node of a user answers through the API server, and must not lead the gardenlet elsewhere. A redirect is a response like any other.
		httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		// CustomResourceDefinitions, too, would be requested in JSON otherwise: of a list in JSON, it is not known what the objects take.
		inProtobuf := rest.CopyConfig(config)
		inProtobuf.ContentType = cmp.Or(inProtobuf.ContentType, runtime.ContentTypeProtobuf)
		c, err := client.New(inProtobuf, client.Options{Scheme: scheme, HTTPClient: httpClient})
		if err != nil {
			return nil, err
		}
		config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, serializer.NewCodecFactory(scheme)
		raw, err := rest.UnversionedRESTClientForConfigAndClient(config, &http.Client{
			Transport: kube.Limited(httpClient.Transport, maxAnswer), CheckRedirect: httpClient.CheckRedirect, Timeout: httpClient.Timeout,
		})
		return &shootClient{c, raw, httpClient}, err
	}
}

type shootClient struct {
	client.Client
	rest rest.Interface
	http *http.Client
}

// Healthz implements ShootClient.
func (c *shootClient) Healthz(ctx context.Context) error {
	if err := c.rest.Get().AbsPath("/healthz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("API server /healthz endpoint does not respond with success: %w", err)
	}
	return nil
}

// ReachNode implements ShootClient. If the kubelet responds, it is reached, whatever the response is. Responses of the API server itself are
// objects of kind Status.
func (c *shootClient) ReachNode(ctx context.Context, name string) error {
	err := c.rest.Get().AbsPath("/api/v1/nodes", name, "proxy", "healthz").Do(ctx).Error()
	if errors.Is(err, kube.ErrTooLarge) { // something responds, and the API server itself says less
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	switch status.Status().Code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return err
	}
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil
	}
	return err
}

// Close implements ShootClient.
func (c *shootClient) Close() { c.http.CloseIdleConnections() }

// shootClients keeps one client per shoot.
type shootClients struct {
	connect func(kubeconfig []byte) (ShootClient, error)

	mu      sync.Mutex
	byShoot map[types.NamespacedName]cachedClient
}

// cachedClient is a client with credentials that CAs have issued at a time.
type cachedClient struct {
	cas    string
	issued time.Time
	client ShootClient
}

var errInvalidKubeconfig = errors.New("the kubeconfig of the gardenlet for the shoot is invalid")

// get returns the client for a shoot. It issues a kubeconfig if there is no client with credentials of these CAs, or they expire soon.
func (c *shootClients) get(shoot types.NamespacedName, cas string, now time.Time, issue func() ([]byte, error)) (ShootClient, error) {
	c.mu.Lock()
	cached := c.byShoot[shoot]
	c.mu.Unlock()
	if cached.client != nil && cached.cas == cas && now.Before(cached.issued.Add(access.RenewAfter)) {
		return cached.client, nil
	}
	data, err := issue()
	if err != nil {
		return nil, err
	}
	shootClient, err := c.connect(data)
	if err != nil {
		return nil, errInvalidKubeconfig // the error itself may quote credentials
	}
	c.close(shoot)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byShoot == nil {
		c.byShoot = map[types.NamespacedName]cachedClient{}
	}
	c.byShoot[shoot] = cachedClient{cas, now, shootClient}
	return shootClient, nil
}

// close closes the client for a shoot that is deleted or hibernated.
func (c *shootClients) close(shoot types.NamespacedName) {
	c.mu.Lock()
	cached := c.byShoot[shoot]
	delete(c.byShoot, shoot)
	c.mu.Unlock()
	if cached.client != nil {
		cached.client.Close()
	}
}
