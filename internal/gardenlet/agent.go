package gardenlet

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/gardenlet/credentials"
	"gardener.cloud/gardener/internal/gardenlet/seed/lease"
	"gardener.cloud/gardener/internal/gardenlet/seed/registration"
	"gardener.cloud/gardener/internal/gardenlet/seed/system"
	"gardener.cloud/gardener/internal/gardenlet/shoot/lifecycle"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/shoot/technicalid"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
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
	images systemcomponents.Images
	vector imagevector.Vector
	// flows are the metrics of flows, and shoots those of operations on Shoots.
	flows       *flow.Metrics
	shoots      *lifecycle.Metrics
	credentials credentials.Values
	// terminateTLS is the feature gate IstioTLSTermination.
	terminateTLS bool
}

// gardenCluster is the connection to the garden.
type gardenCluster struct {
	// Cluster is in the manager. Its cache only has objects of this seed.
	cluster.Cluster
	// api reads without the cache: flows read what they have just written, and wait for what other components write.
	api    client.WithWatch
	access *credentials.Access
}

// Start connects to the garden, checks that the versions work together, registers the seed, adds the controllers, and renews the credentials for the garden until the context ends.
func (a *agent) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, a.GetLogger())
	garden, err := a.connect(ctx)
	if err != nil {
		return err
	}
	if err := checkSkew(ctx, garden.api, a.gardener.Version, a.GetLogger()); err != nil {
		return err
	}
	if err := a.register(ctx, garden); err != nil {
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

// register registers the seed. If the garden refuses the new configuration of a seed, it reports so: the gardenlet serves its shoots as before, and
// tries again.
func (a *agent) register(ctx context.Context, garden *gardenCluster) error {
	err := registration.Register(ctx, garden.api, a.config.SeedConfig)
	if !errors.Is(err, registration.ErrRefused) {
		return err
	}
	return a.Add(manager.RunnableFunc(func(ctx context.Context) error {
		registration.Retry(logf.IntoContext(ctx, a.GetLogger()), garden.api, a.config.SeedConfig, err, a.clock)
		return nil
	}))
}

// connect obtains credentials for the garden, and adds its cluster to the manager.
func (a *agent) connect(ctx context.Context) (*gardenCluster, error) {
	access, err := credentials.Obtain(ctx, a.credentials)
	if err != nil {
		return nil, fmt.Errorf("obtain credentials for the garden: %w", err)
	}
	config := rest.AddUserAgent(access.Config, Name)
	config.Wrap(RetryForbidden)
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = a.GetScheme()
		o.MapperProvider = process.Mapper(ctx, gardenKinds()...)
		o.Logger = a.GetLogger().WithValues("cluster", "garden")
		o.Client.Cache = uncached()
		o.Client.Cache.DisableFor = append(o.Client.Cache.DisableFor, &coordinationv1.Lease{})
		o.Cache = GardenCache(a.config.SeedConfig.Name)
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the garden: %w", err)
	}
	if err := technicalid.Index(ctx, c.GetFieldIndexer()); err != nil {
		return nil, err
	}
	// The first Shoot may need them before the controller that watches them has started; none watches CloudProfiles.
	for _, object := range []client.Object{&corev1beta1.CloudProfile{}, &corev1beta1.ControllerRegistration{}, &operationsv1alpha1.Bastion{}} {
		if _, err := c.GetCache().GetInformer(ctx, object); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
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

// GardenCache has only what a gardenlet may list and watch: objects of its seed, and kinds that all users may read. What controllers do not
// watch is not read from it, as that would begin to watch all objects of the kind, which is forbidden.
func GardenCache(seedName string) cache.Options {
	only := func(key string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector(key, seedName)}
	}
	return cache.Options{
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1beta1.Seed{}:                   only("metadata.name"),
			&corev1beta1.ControllerInstallation{}: only("spec.seedRef.name"),
			&corev1beta1.BackupBucket{}:           only("spec.seedName"),
			&operationsv1alpha1.Bastion{}:         only("spec.seedName"),
			&seedmanagementv1alpha1.Gardenlet{}: {
				Namespaces: map[string]cache.Config{constants.GardenNamespace: {}}, Field: fields.OneTermEqualSelector("metadata.name", seedName),
			},
			&seedmanagementv1alpha1.ManagedSeed{}: {
				Namespaces: map[string]cache.Config{constants.GardenNamespace: {}},
				Label:      labels.SelectorFromSet(labels.Set{constants.PrefixSeedName + seedName: "true"}),
			},
			// Those that are to be on the seed, and those that are still there.
			&corev1beta1.Shoot{}:       {Label: labels.SelectorFromSet(labels.Set{constants.PrefixSeedName + seedName: "true"})},
			&corev1beta1.BackupEntry{}: {Label: labels.SelectorFromSet(labels.Set{constants.PrefixSeedName + seedName: "true"})},
		},
	}
}

// uncached are the kinds that are not cached: most of their many objects are not for the gardenlet, and they are large or secret.
func uncached() *client.CacheOptions {
	return &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1beta1.InternalSecret{}}}
}
