package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/gardenlet/backupbucket"
	"gardener.cloud/gardener/internal/gardenlet/backupentry"
	installationcare "gardener.cloud/gardener/internal/gardenlet/controllerinstallation/care"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/installation"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/required"
	"gardener.cloud/gardener/internal/gardenlet/credentials"
	seedcare "gardener.cloud/gardener/internal/gardenlet/seed/care"
	"gardener.cloud/gardener/internal/gardenlet/seed/lease"
	"gardener.cloud/gardener/internal/gardenlet/seed/registration"
	"gardener.cloud/gardener/internal/gardenlet/seed/system"
	shootcare "gardener.cloud/gardener/internal/gardenlet/shoot/care"
	"gardener.cloud/gardener/internal/gardenlet/shoot/lifecycle"
	shootstate "gardener.cloud/gardener/internal/gardenlet/shoot/state"
	"gardener.cloud/gardener/internal/gardenlet/vpaevictionrequirements"
	"gardener.cloud/gardener/internal/gardenlet/workloadidentity"
	"gardener.cloud/gardener/internal/networkpolicy/general"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/tokenrequestor"
	"gardener.cloud/gardener/pkg/flow"
)

// agent is what the leading replica does. It runs in the manager, and adds to it what needs the garden as soon as there is access: a
// replica that waits for the leadership, or for its first certificate, answers its probes all the same.
type agent struct {
	*process.Process
	config        *Config
	seedClient    client.WithWatch
	seedDiscovery discovery.DiscoveryInterface
	health        *lease.Health
	clock         clock.WithDelayedExecution
	gardener      corev1beta1.Gardener
	images        system.Images
	vector        imagevector.Vector
	flows         *flow.Metrics
	shoots        *lifecycle.Metrics
	credentials   credentials.Values
}

// Start gets access to the garden, registers the seed, adds the controllers, and keeps the access until the context ends.
func (a *agent) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, a.GetLogger())
	access, err := credentials.Obtain(ctx, a.credentials)
	if err != nil {
		return fmt.Errorf("get access to the garden: %w", err)
	}
	garden, err := a.connect(ctx, access.Config)
	if err != nil {
		return err
	}
	if err := registration.Register(ctx, garden.GetAPIReader(), garden.GetClient(), a.config.SeedConfig); err != nil {
		return err
	}
	if err := system.DeployKinds(ctx, a.seedClient); err != nil {
		return fmt.Errorf("create kinds in the seed: %w", err)
	}
	if err := a.addControllers(garden, access); err != nil {
		return fmt.Errorf("add controllers: %w", err)
	}
	return credentials.Keep(ctx, a.credentials, access)
}

// connect adds the garden to the manager. Of what belongs to seeds, a gardenlet may see and keeps only what belongs to its own one.
func (a *agent) connect(ctx context.Context, config *rest.Config) (cluster.Cluster, error) {
	name := a.config.SeedConfig.Name
	only := func(key string) cache.ByObject { return cache.ByObject{Field: fields.OneTermEqualSelector(key, name)} }
	garden, err := cluster.New(rest.AddUserAgent(config, Name), func(o *cluster.Options) {
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
	if err := a.Add(garden); err != nil {
		return nil, fmt.Errorf("add the garden: %w", err)
	}
	return garden, nil
}

// connectShoot connects to a shoot. Requests are for flows and their waits, so they have no limit of their own.
func (a *agent) connectShoot(config *rest.Config) (client.WithWatch, error) {
	config = rest.AddUserAgent(config, Name)
	config.QPS = -1
	return client.NewWithWatch(config, client.Options{Scheme: a.GetScheme()})
}

// discoverTimeout is for how long an API server may take to say what it serves.
const discoverTimeout = 15 * time.Second

// discoverShoot asks the API server of a shoot what it serves. It does not know about groups whose servers do not answer.
func discoverShoot(config *rest.Config) ([]*metav1.APIResourceList, error) {
	config = rest.AddUserAgent(config, Name)
	config.Timeout = discoverTimeout
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, resources, err := d.ServerGroupsAndResources()
	if discovery.IsGroupDiscoveryFailedError(err) {
		err = nil
	}
	return resources, err
}

// uncached are the kinds that are read when they are needed: there are many, most of which are not for the gardenlet, and they are large
// or secret.
func uncached() *client.CacheOptions {
	return &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1beta1.InternalSecret{}}}
}

func (a *agent) addControllers(garden cluster.Cluster, access *credentials.Access) error {
	c := a.config.Controllers
	// Flows read in the garden what they have just written there, and wait for what others write.
	gardenClient, err := client.NewWithWatch(garden.GetConfig(), client.Options{
		Scheme: a.GetScheme(), Mapper: garden.GetRESTMapper(), HTTPClient: garden.GetHTTPClient(),
	})
	if err != nil {
		return fmt.Errorf("connect to the garden: %w", err)
	}
	var expiry *time.Time
	if access.Certificate != nil {
		expiry = &access.Certificate.NotAfter
	}
	resources := a.config.Resources
	if resources == nil {
		resources = &gardenletconfigv1alpha1.ResourcesConfiguration{}
	}
	return errors.Join(
		backupbucket.Add(a.Manager, backupbucket.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, ConcurrentSyncs: *c.BackupBucket.ConcurrentSyncs, Clock: a.clock,
		}),
		backupentry.Add(a.Manager, backupentry.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, Config: *c.BackupEntry, Clock: a.clock,
		}),
		general.Add(a.Manager, general.Values{
			NamespaceSelectors: append(resourcemanager.SeedNamespaces(), c.NetworkPolicy.AdditionalNamespaceSelectors...),
			Networks:           a.networks(garden.GetClient()), Concurrency: *c.NetworkPolicy.ConcurrentSyncs, FieldOwner: Name,
		}),
		lease.Add(a.Manager, lease.Values{
			Garden: garden, SeedREST: a.seedDiscovery.RESTClient(), Health: a.health, Clock: a.clock,
			Period: time.Duration(*c.Seed.LeaseResyncSeconds) * time.Second,
		}),
		system.Add(a.Manager, system.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, SeedClient: a.seedClient, SeedVersion: a.seedDiscovery,
			KubeconfigSecret: a.config.GardenClientConnection.KubeconfigSecret, CertificateExpiry: expiry,
			Gardener: a.gardener, Images: a.images, ETCD: a.config.ETCDConfig, Capacity: resources.Capacity, Reserved: resources.Reserved,
			SyncPeriod: c.Seed.SyncPeriod.Duration, Metrics: a.flows, Clock: a.clock,
		}),
		lifecycle.Add(a.Manager, lifecycle.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, GardenAPI: gardenClient, SeedAPI: a.seedClient, Connect: a.connectShoot,
			Discover: discoverShoot,
			Gardener: a.gardener, Images: a.vector, Config: *c.Shoot, Metrics: a.shoots, FlowMetrics: a.flows, Clock: a.clock,
		}),
		shootcare.Add(a.Manager, shootcare.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, SeedReader: a.seedClient, Connect: shootcare.Connector(a.GetScheme(), Name),
			Config: *c.ShootCare, Clock: a.clock,
		}),
		shootstate.Add(a.Manager, shootstate.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, GardenReader: gardenClient, SeedReader: a.seedClient, Config: *c.ShootState, Clock: a.clock,
		}),
		seedcare.Add(a.Manager, seedcare.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, Components: system.Components, SeedReader: a.seedClient, Config: *c.SeedCare, Clock: a.clock,
		}),
		installation.Add(a.Manager, installation.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, GardenConfig: access.Config, SeedVersion: a.seedDiscovery,
			Version: a.gardener.Version, FeatureGates: a.config.FeatureGates, ConcurrentSyncs: *c.ControllerInstallation.ConcurrentSyncs, Clock: a.clock,
		}),
		installationcare.Add(a.Manager, installationcare.Values{
			Garden: garden, SyncPeriod: c.ControllerInstallationCare.SyncPeriod.Duration,
			ConcurrentSyncs: *c.ControllerInstallationCare.ConcurrentSyncs, Clock: a.clock,
		}),
		// The accounts of components in the seed are in the garden, in the namespace of the seed.
		tokenrequestor.Add(a.Manager, a.Manager, garden, tokenrequestor.Values{
			Class: resourcesv1alpha1.ResourceManagerClassGarden, Concurrency: *c.TokenRequestor.ConcurrentSyncs, Clock: a.clock,
			TargetNamespace: constants.SeedNamespaceNamePrefix + a.config.SeedConfig.Name,
		}),
		workloadidentity.Add(a.Manager, workloadidentity.Values{
			SeedName: a.config.SeedConfig.Name, GardenClient: gardenClient, SeedClient: a.seedClient,
			TokenExpiration: c.TokenRequestorWorkloadIdentity.TokenExpirationDuration.Duration,
			ConcurrentSyncs: *c.TokenRequestorWorkloadIdentity.ConcurrentSyncs, Clock: a.clock,
		}),
		vpaevictionrequirements.Add(a.Manager, vpaevictionrequirements.Values{
			SeedClient: a.seedClient, ConcurrentSyncs: *c.VPAEvictionRequirements.ConcurrentSyncs, Clock: a.clock,
		}),
		required.Add(a.Manager, required.Values{
			Garden: garden, ConcurrentSyncs: *c.ControllerInstallationRequired.ConcurrentSyncs, Clock: a.clock,
		}),
	)
}

// networks returns how to find out the networks of the seed.
func (a *agent) networks(gardenClient client.Client) func(context.Context) (general.Networks, error) {
	return func(ctx context.Context) (general.Networks, error) {
		seed := &corev1beta1.Seed{}
		if err := gardenClient.Get(ctx, client.ObjectKey{Name: a.config.SeedConfig.Name}, seed); err != nil {
			return general.Networks{}, fmt.Errorf("read networks of the seed: %w", err)
		}
		networks := general.Networks{Own: []string{seed.Spec.Networks.Pods, seed.Spec.Networks.Services}, Blocked: seed.Spec.Networks.BlockCIDRs}
		if nodes := seed.Spec.Networks.Nodes; nodes != nil {
			networks.Own = append(networks.Own, *nodes)
		}
		return networks, nil
	}
}
