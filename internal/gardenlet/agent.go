package gardenlet

import (
	"context"
	"fmt"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/gardenlet/credentials"
	"gardener.cloud/gardener/internal/gardenlet/seed/lease"
	"gardener.cloud/gardener/internal/gardenlet/seed/registration"
	"gardener.cloud/gardener/internal/gardenlet/seed/system"
	"gardener.cloud/gardener/internal/gardenlet/shoot/lifecycle"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/pkg/flow"
)

// agent is what the leading replica runs. It connects to the garden and then adds the controllers to the manager, which runs already: a replica
// that waits for the leadership or for its first certificate responds to its probes too.
type agent struct {
	*process.Process
	config        *Config
	seedAPI       client.WithWatch
	seedDiscovery discovery.DiscoveryInterface
	health        *lease.Health
	clock         clock.WithDelayedExecution
	// gardener is this gardenlet, for the status of Seeds and Shoots.
	gardener corev1beta1.Gardener
	// images are those of seed components, and vector has those of control planes.
	images system.Images
	vector imagevector.Vector
	// flows are the metrics of flows, and shoots those of operations on Shoots.
	flows       *flow.Metrics
	shoots      *lifecycle.Metrics
	credentials credentials.Values
}

// gardenCluster is the connection to the garden.
type gardenCluster struct {
	// Cluster is in the manager. Its cache only has objects of this seed.
	cluster.Cluster
	// api reads without the cache: flows read what they have just written, and wait for what other components write.
	api    client.WithWatch
	access *credentials.Access
}

// Start connects to the garden, registers the seed, adds the controllers, and renews the credentials for the garden until the context ends.
func (a *agent) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, a.GetLogger())
	garden, err := a.connect(ctx)
	if err != nil {
		return err
	}
	if err := registration.Register(ctx, garden.api, a.config.SeedConfig); err != nil {
		return err
	}
	if err := system.DeployCRDs(ctx, a.seedAPI); err != nil {
		return fmt.Errorf("deploy CRDs to the seed: %w", err)
	}
	if err := a.addControllers(garden); err != nil {
		return fmt.Errorf("add controllers: %w", err)
	}
	return credentials.Keep(ctx, a.credentials, garden.access)
}

// connect obtains credentials for the garden, and adds its cluster to the manager. The cache only has the objects of this seed, as a gardenlet
// must not read those of other seeds.
func (a *agent) connect(ctx context.Context) (*gardenCluster, error) {
	access, err := credentials.Obtain(ctx, a.credentials)
	if err != nil {
		return nil, fmt.Errorf("obtain credentials for the garden: %w", err)
	}
	name := a.config.SeedConfig.Name
	only := func(key string) cache.ByObject { return cache.ByObject{Field: fields.OneTermEqualSelector(key, name)} }
	config := rest.AddUserAgent(access.Config, Name)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return awaitingGrants{next} })
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = a.GetScheme()
		o.MapperProvider = process.Mapper(ctx, gardenKinds()...)
		o.Logger = a.GetLogger().WithValues("cluster", "garden")
		o.Client.Cache = uncached()
		o.Client.Cache.DisableFor = append(o.Client.Cache.DisableFor, &coordinationv1.Lease{})
		o.Cache.DefaultTransform = cache.TransformStripManagedFields()
		o.Cache.ByObject = map[client.Object]cache.ByObject{
			&corev1beta1.Seed{}:                   only("metadata.name"),
			&corev1beta1.ControllerInstallation{}: only("spec.seedRef.name"),
			&corev1beta1.BackupBucket{}:           only("spec.seedName"),
			&corev1beta1.BackupEntry{}:            only("spec.seedName"),
			&corev1beta1.Shoot{}:                  only("spec.seedName"),
		}
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the garden: %w", err)
	}
	if err := a.Add(c); err != nil {
		return nil, fmt.Errorf("add the garden to the manager: %w", err)
	}
	api, err := client.NewWithWatch(c.GetConfig(), client.Options{
		Scheme: a.GetScheme(), Mapper: c.GetRESTMapper(), HTTPClient: c.GetHTTPClient(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the garden: %w", err)
	}
	return &gardenCluster{Cluster: c, api: api, access: access}, nil
}

// uncached are the kinds that are not cached: most of their many objects are not for the gardenlet, and they are large or secret.
func uncached() *client.CacheOptions {
	return &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1beta1.InternalSecret{}}}
}
