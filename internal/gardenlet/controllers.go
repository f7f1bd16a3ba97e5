package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/gardenlet/backupbucket"
	"gardener.cloud/gardener/internal/gardenlet/backupentry"
	"gardener.cloud/gardener/internal/gardenlet/bastion"
	installationcare "gardener.cloud/gardener/internal/gardenlet/controllerinstallation/care"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/installation"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/required"
	"gardener.cloud/gardener/internal/gardenlet/managedseed"
	seedcare "gardener.cloud/gardener/internal/gardenlet/seed/care"
	"gardener.cloud/gardener/internal/gardenlet/seed/lease"
	"gardener.cloud/gardener/internal/gardenlet/seed/system"
	shootcare "gardener.cloud/gardener/internal/gardenlet/shoot/care"
	"gardener.cloud/gardener/internal/gardenlet/shoot/fence"
	"gardener.cloud/gardener/internal/gardenlet/shoot/lifecycle"
	shootstate "gardener.cloud/gardener/internal/gardenlet/shoot/state"
	shootstatus "gardener.cloud/gardener/internal/gardenlet/shoot/status"
	"gardener.cloud/gardener/internal/gardenlet/upgrade"
	"gardener.cloud/gardener/internal/gardenlet/workloadidentity"
	"gardener.cloud/gardener/internal/networkpolicy/general"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/tokenrequestor"
	"gardener.cloud/gardener/internal/vpaevictionrequirements"
)

// addControllers adds all controllers of the gardenlet to the manager.
func (a *agent) addControllers(garden *gardenCluster) error {
	return errors.Join(
		a.addSeedControllers(garden), a.addExtensionControllers(garden), a.addBackupControllers(garden), a.addShootControllers(garden),
		a.addTokenControllers(garden), a.addUpgradeController(garden), a.addManagedSeedController(garden),
	)
}

// addUpgradeController adds the controller of the gardenlet itself.
func (a *agent) addUpgradeController(garden *gardenCluster) error {
	return upgrade.Add(a.Manager, upgrade.Values{
		SeedName: a.config.SeedConfig.Name, Garden: garden, GardenAPI: garden.api, SeedAPI: a.seedAPI, SeedVersion: a.seedDiscovery,
		KubeconfigSecret: a.config.GardenClientConnection.KubeconfigSecret,
		HostsGarden:      func(ctx context.Context) (bool, error) { return system.HostsGarden(ctx, a.seedAPI) },
		Pod:              a.gardener.Name, ReachesGarden: a.health.Renewed,
		SyncPeriod: a.config.Controllers.Gardenlet.SyncPeriod.Duration, Clock: a.clock,
	})
}

// addManagedSeedController adds the controller of seeds that are shoots of this seed.
func (a *agent) addManagedSeedController(garden *gardenCluster) error {
	return managedseed.Add(a.Manager, managedseed.Values{
		SeedName: a.config.SeedConfig.Name, Garden: garden, GardenAPI: garden.api, SeedAPI: a.seedAPI, Connect: a.connectShoot,
		Parent: a.config, Config: *a.config.Controllers.ManagedSeed, Clock: a.clock,
	})
}

// addSeedControllers adds the controllers of the Seed, and those of objects of the seed that belong to no shoot.
func (a *agent) addSeedControllers(garden *gardenCluster) error {
	c, seedName := a.config.Controllers, a.config.SeedConfig.Name
	resources := ptr.Deref(a.config.Resources, gardenletconfigv1alpha1.ResourcesConfiguration{})
	var certificateExpiry *time.Time
	if certificate := garden.access.Certificate; certificate != nil {
		certificateExpiry = &certificate.NotAfter
	}
	return errors.Join(
		lease.Add(a.Manager, lease.Values{
			Garden: garden, SeedREST: a.seedDiscovery.RESTClient(), Health: a.health, Clock: a.clock,
			Period: time.Duration(*c.Seed.LeaseResyncSeconds) * time.Second,
		}),
		system.Add(a.Manager, system.Values{
			SeedName: seedName, Garden: garden, GardenAPI: garden.api, SeedAPI: a.seedAPI, SeedVersion: a.seedDiscovery,
			KubeconfigSecret: a.config.GardenClientConnection.KubeconfigSecret, CertificateExpiry: certificateExpiry,
			Gardener: a.gardener, Images: a.images, ETCD: a.config.ETCDConfig, NodeToleration: a.config.NodeToleration, Capacity: resources.Capacity, Reserved: resources.Reserved,
			SNI: a.config.SNI, Handlers: a.config.ExposureClassHandlers, TerminateTLS: a.terminateTLS,
			SyncPeriod: c.Seed.SyncPeriod.Duration, Metrics: a.flows, Clock: a.clock,
		}),
		seedcare.Add(a.Manager, seedcare.Values{
			SeedName: seedName, Garden: garden, SeedAPI: a.seedAPI, Config: *c.SeedCare, Clock: a.clock,
			Components: func(seed *corev1beta1.Seed) []client.Object {
				return system.Components(seed, a.config.ExposureClassHandlers)
			},
		}),
		general.Add(a.Manager, general.Values{
			NamespaceSelectors: append(resourcemanager.SeedNamespaces(), c.NetworkPolicy.AdditionalNamespaceSelectors...),
			Networks:           a.networks(garden.GetClient()), NetworksOf: &corev1beta1.Seed{}, Cache: garden.GetCache(),
			Concurrency: *c.NetworkPolicy.ConcurrentSyncs, FieldOwner: Name,
		}),
		vpaevictionrequirements.Add(a.Manager, vpaevictionrequirements.Values{
			SeedAPI: a.seedAPI, ConcurrentSyncs: *c.VPAEvictionRequirements.ConcurrentSyncs, Clock: a.clock,
		}),
	)
}

// gateValues are all feature gates with the value that they have, whether they are configured or not.
func gateValues(gates featuregate.FeatureGate) map[string]bool {
	values := map[string]bool{}
	for gate := range gates.DeepCopy().GetAll() {
		values[string(gate)] = gates.Enabled(gate)
	}
	return values
}

// addExtensionControllers adds the controllers of ControllerInstallations.
func (a *agent) addExtensionControllers(garden *gardenCluster) error {
	c := a.config.Controllers
	return errors.Join(
		installation.Add(a.Manager, installation.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, GardenAPI: garden.api, GardenConfig: garden.access.Config, SeedVersion: a.seedDiscovery,
			Version: a.gardener.Version, FeatureGates: gateValues(a.Gates), ConcurrentSyncs: *c.ControllerInstallation.ConcurrentSyncs, Clock: a.clock,
		}),
		installationcare.Add(a.Manager, installationcare.Values{
			Garden: garden, SyncPeriod: c.ControllerInstallationCare.SyncPeriod.Duration,
			ConcurrentSyncs: *c.ControllerInstallationCare.ConcurrentSyncs, Clock: a.clock,
		}),
		required.Add(a.Manager, required.Values{
			Garden: garden, ConcurrentSyncs: *c.ControllerInstallationRequired.ConcurrentSyncs, Clock: a.clock,
		}),
	)
}

// addBackupControllers adds the controllers of BackupBuckets and BackupEntries.
func (a *agent) addBackupControllers(garden *gardenCluster) error {
	c, seedName := a.config.Controllers, a.config.SeedConfig.Name
	return errors.Join(
		backupbucket.Add(a.Manager, backupbucket.Values{
			SeedName: seedName, Garden: garden, SeedAPI: a.seedAPI, ConcurrentSyncs: *c.BackupBucket.ConcurrentSyncs, Clock: a.clock,
		}),
		backupentry.Add(a.Manager, backupentry.Values{
			SeedName: seedName, Garden: garden, SeedAPI: a.seedAPI, Config: *c.BackupEntry, Clock: a.clock,
		}),
	)
}

// addShootControllers adds the controllers of Shoots, and of Bastions, which are in their control planes.
func (a *agent) addShootControllers(garden *gardenCluster) error {
	c := a.config.Controllers
	states := shootstate.Values{
		SeedName: a.config.SeedConfig.Name, Garden: garden, GardenAPI: garden.api, SeedAPI: a.seedAPI, Config: *c.ShootState, Clock: a.clock,
	}
	return errors.Join(
		lifecycle.Add(a.Manager, lifecycle.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, GardenAPI: garden.api, SeedAPI: a.seedAPI,
			Connect: a.connectShoot, Discover: discoverShoot, Gateways: system.Gateways(a.config.ExposureClassHandlers), TerminateTLS: a.terminateTLS,
			SavesStates: func(ctx context.Context) (bool, error) { return shootstate.Saves(ctx, states) },
			Gardener:    a.gardener, Images: a.vector, Config: *c.Shoot, ETCD: a.config.ETCDConfig, Metrics: a.shoots, FlowMetrics: a.flows, Clock: a.clock,
		}),
		shootcare.Add(a.Manager, shootcare.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, SeedAPI: a.seedAPI,
			Connect: shootcare.Connector(a.GetScheme(), Name, process.SetConnection(a.config.ShootClientConnection.ClientConnectionConfiguration)),
			Config:  *c.ShootCare, Clock: a.clock,
		}),
		bastion.Add(a.Manager, bastion.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, SeedAPI: a.seedAPI, ConcurrentSyncs: *c.Bastion.ConcurrentSyncs, Clock: a.clock,
		}),
		shootstatus.Add(a.Manager, shootstatus.Values{
			SeedName: a.config.SeedConfig.Name, GardenAPI: garden.api, SeedAPI: a.seedAPI, Config: *c.ShootStatus,
		}),
		shootstate.Add(a.Manager, states),
		fence.Add(a.Manager, fence.Values{
			SeedName: a.config.SeedConfig.Name, Garden: garden, GardenAPI: garden.api, SeedAPI: a.seedAPI, Confirmation: fence.Confirmation, Clock: a.clock,
		}),
	)
}

// addTokenControllers adds the controllers that request tokens in the garden for components and extensions in the seed.
func (a *agent) addTokenControllers(garden *gardenCluster) error {
	c := a.config.Controllers
	return errors.Join(
		// The ServiceAccounts are in the namespace of the seed in the garden.
		tokenrequestor.Add(a.Manager, a.Manager, garden, tokenrequestor.Values{
			Class: resourcesv1alpha1.ResourceManagerClassGarden, Concurrency: *c.TokenRequestor.ConcurrentSyncs, Clock: a.clock,
			TargetNamespace: constants.SeedNamespaceNamePrefix + a.config.SeedConfig.Name,
		}),
		workloadidentity.Add(a.Manager, workloadidentity.Values{
			SeedName: a.config.SeedConfig.Name, GardenClient: garden.api, SeedClient: a.seedAPI,
			TokenExpiration: c.TokenRequestorWorkloadIdentity.TokenExpirationDuration.Duration,
			ConcurrentSyncs: *c.TokenRequestorWorkloadIdentity.ConcurrentSyncs, Clock: a.clock,
		}),
	)
}

// networks returns a function that reads the networks of the seed.
func (a *agent) networks(gardenCache client.Client) func(context.Context) (general.Networks, error) {
	return func(ctx context.Context) (general.Networks, error) {
		seed := &corev1beta1.Seed{}
		if err := gardenCache.Get(ctx, client.ObjectKey{Name: a.config.SeedConfig.Name}, seed); err != nil {
			return general.Networks{}, fmt.Errorf("read networks of the seed: %w", err)
		}
		networks := general.Networks{Own: []string{seed.Spec.Networks.Pods, seed.Spec.Networks.Services}, Blocked: seed.Spec.Networks.BlockCIDRs}
		if nodes := seed.Spec.Networks.Nodes; nodes != nil {
			networks.Own = append(networks.Own, *nodes)
		}
		return networks, nil
	}
}
