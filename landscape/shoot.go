package landscape

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// gatewayService is the load balancer in front of all control planes of a seed.
var gatewayService = client.ObjectKey{Namespace: "gateway", Name: "gateway"}

// lookupExpiration is how long credentials are valid with which the gateway of a seed is looked up. The garden allows no less.
const lookupExpiration = 10 * time.Minute

// Access is a request for credentials of a shoot.
type Access struct {
	// Shoot is the shoot's namespace and name.
	Shoot client.ObjectKey
	// Viewer requests read-only access.
	Viewer bool
	// Expiration is how long the credentials are valid; the garden may allow less.
	Expiration time.Duration
}

// ShootKubeconfig requests credentials for a shoot from the garden, and returns the file with a kubeconfig that works on this computer: the
// names of shoots are resolved in clusters of the landscape only, so it has the address of the gateway.
func (l *Landscape) ShootKubeconfig(ctx context.Context, access Access) (string, error) {
	if err := l.CheckKubeconfig(VirtualGarden); err != nil {
		return "", err
	}
	c, err := l.Client(VirtualGarden)
	if err != nil {
		return "", err
	}
	shoot := &corev1beta1.Shoot{}
	if err := c.Get(ctx, access.Shoot, shoot); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("shoot %q not found; list them with: kubectl get shoots -A", access.Shoot)
	} else if err != nil {
		return "", fmt.Errorf("read shoot %q: %w", access.Shoot, err)
	}
	raw, err := requestKubeconfig(ctx, c, shoot, access)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig from the garden: %w", err)
	}
	gateway, err := l.gatewayAddress(ctx, c, shoot)
	if err != nil {
		return "", err
	}
	for _, cluster := range config.Clusters {
		if err := byAddress(cluster, gateway); err != nil {
			return "", err
		}
	}
	raw, err = clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	file := l.shootKubeconfigFile(access)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, raw, 0o600)
}

// gatewayAddress is the address of the gateway of the seed that a shoot is on.
func (l *Landscape) gatewayAddress(ctx context.Context, garden client.Client, shoot *corev1beta1.Shoot) (string, error) {
	seed := ptr.Deref(shoot.Status.SeedName, ptr.Deref(shoot.Spec.SeedName, ""))
	c, err := l.seedClient(ctx, garden, seed)
	if err != nil {
		return "", fmt.Errorf("shoot %q: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return addressOfGateway(ctx, c, seed)
}

// seedClient returns a client for a seed: a cluster of the landscape, or a shoot with a ManagedSeed.
func (l *Landscape) seedClient(ctx context.Context, garden client.Client, seed string) (client.Client, error) {
	cluster, err := l.clusterOfSeed(seed)
	if err == nil {
		return l.Client(cluster.Name)
	}
	if seed == "" {
		return nil, err
	}
	shoot, managedErr := managedSeedShoot(ctx, garden, seed)
	if managedErr != nil {
		return nil, managedErr
	}
	if shoot == nil {
		return nil, err
	}
	file, err := l.ShootKubeconfig(ctx, Access{Shoot: *shoot, Viewer: true, Expiration: lookupExpiration})
	if err != nil {
		return nil, fmt.Errorf("its seed %q is shoot %q: %w", seed, shoot, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{})
}

// managedSeedShoot returns the shoot that a seed is, or nil if it has no ManagedSeed.
func managedSeedShoot(ctx context.Context, garden client.Reader, seed string) (*client.ObjectKey, error) {
	managed, key := &seedmanagementv1alpha1.ManagedSeed{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed}
	if err := garden.Get(ctx, key, managed); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ManagedSeed %q: %w", key, err)
	} else if err != nil || managed.Spec.Shoot == nil {
		return nil, nil //nolint:nilnil // documented
	}
	return &client.ObjectKey{Namespace: managed.Namespace, Name: managed.Spec.Shoot.Name}, nil
}

// addressOfGateway is the address of the gateway of a seed, given a client of its cluster.
func addressOfGateway(ctx context.Context, c client.Client, seed string) (string, error) {
	gateway := &corev1.Service{}
	if err := c.Get(ctx, gatewayService, gateway); err != nil {
		return "", fmt.Errorf("find the gateway of seed %q: %w", seed, err)
	}
	if len(gateway.Status.LoadBalancer.Ingress) == 0 {
		return "", fmt.Errorf("the gateway of seed %q has no address yet", seed)
	}
	return gateway.Status.LoadBalancer.Ingress[0].IP, nil
}

func (l *Landscape) shootKubeconfigFile(access Access) string {
	kind := "admin"
	if access.Viewer {
		kind = "viewer"
	}
	return filepath.Join(filepath.Dir(l.KubeconfigFile(RuntimeCluster)), "shoots", access.Shoot.Namespace, access.Shoot.Name+"-"+kind+".yaml")
}

// requestKubeconfig requests credentials from the garden.
func requestKubeconfig(ctx context.Context, c client.Client, shoot *corev1beta1.Shoot, access Access) ([]byte, error) {
	seconds := int64(access.Expiration.Seconds())
	if access.Viewer {
		request := &authenticationv1alpha1.ViewerKubeconfigRequest{}
		request.Spec.ExpirationSeconds = &seconds
		err := c.SubResource("viewerkubeconfig").Create(ctx, shoot, request)
		return request.Status.Kubeconfig, wrapRequest(err, access)
	}
	request := &authenticationv1alpha1.AdminKubeconfigRequest{}
	request.Spec.ExpirationSeconds = &seconds
	err := c.SubResource("adminkubeconfig").Create(ctx, shoot, request)
	return request.Status.Kubeconfig, wrapRequest(err, access)
}

func wrapRequest(err error, access Access) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("request a kubeconfig for shoot %q: %w", access.Shoot, err)
}

// byAddress points a kubeconfig at the address of a server, and keeps its name for the verification of its certificate.
func byAddress(cluster *clientcmdapi.Cluster, address string) error {
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return fmt.Errorf("address of the API server: %w", err)
	}
	cluster.TLSServerName = server.Hostname()
	port := server.Port()
	if port == "" {
		port = "443"
	}
	server.Host = net.JoinHostPort(address, port)
	cluster.Server = server.String()
	return nil
}
