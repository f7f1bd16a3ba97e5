// Package controllermanager is the gardener-controller-manager: the controllers of the garden that need no seed.
package controllermanager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/controllermanager/bastion"
	"gardener.cloud/gardener/internal/controllermanager/certificatesigningrequest"
	"gardener.cloud/gardener/internal/controllermanager/cloudprofile"
	"gardener.cloud/gardener/internal/controllermanager/controllerdeployment"
	"gardener.cloud/gardener/internal/controllermanager/controllerregistration/extensionclusterrole"
	registrationfinalizer "gardener.cloud/gardener/internal/controllermanager/controllerregistration/finalizer"
	"gardener.cloud/gardener/internal/controllermanager/controllerregistration/installation"
	"gardener.cloud/gardener/internal/controllermanager/credentials"
	"gardener.cloud/gardener/internal/controllermanager/credentialsbinding"
	"gardener.cloud/gardener/internal/controllermanager/event"
	"gardener.cloud/gardener/internal/controllermanager/exposureclass"
	"gardener.cloud/gardener/internal/controllermanager/managedseed"
	"gardener.cloud/gardener/internal/controllermanager/managedseed/orphan"
	"gardener.cloud/gardener/internal/controllermanager/managedseedset"
	"gardener.cloud/gardener/internal/controllermanager/namespacedcloudprofile"
	"gardener.cloud/gardener/internal/controllermanager/plant"
	"gardener.cloud/gardener/internal/controllermanager/project"
	"gardener.cloud/gardener/internal/controllermanager/project/activity"
	"gardener.cloud/gardener/internal/controllermanager/project/resourcequota"
	"gardener.cloud/gardener/internal/controllermanager/project/stale"
	"gardener.cloud/gardener/internal/controllermanager/quota"
	"gardener.cloud/gardener/internal/controllermanager/referenceprotection"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/secretbinding"
	"gardener.cloud/gardener/internal/controllermanager/seed/care"
	"gardener.cloud/gardener/internal/controllermanager/seed/lifecycle"
	"gardener.cloud/gardener/internal/controllermanager/seed/registration"
	"gardener.cloud/gardener/internal/controllermanager/seed/secrets"
	"gardener.cloud/gardener/internal/controllermanager/shoot/conditions"
	"gardener.cloud/gardener/internal/controllermanager/shoot/hibernation"
	"gardener.cloud/gardener/internal/controllermanager/shoot/maintenance"
	"gardener.cloud/gardener/internal/controllermanager/shoot/migration"
	shootquota "gardener.cloud/gardener/internal/controllermanager/shoot/quota"
	"gardener.cloud/gardener/internal/controllermanager/shoot/retry"
	"gardener.cloud/gardener/internal/controllermanager/shoot/statuslabel"
	"gardener.cloud/gardener/internal/controllermanager/shootstate/finalizer"
	"gardener.cloud/gardener/internal/process"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/pkg/destination"
)

// Name is the name of the command.
const Name = "gardener-controller-manager"

// reconciliationTimeout is how long a reconciliation may take. It makes a few dozen requests at most.
const reconciliationTimeout = 3 * time.Minute

// Config is the type of the configuration file.
type Config = controllermanagerconfigv1alpha1.ControllerManagerConfiguration

// Component describes the process.
func Component() process.Component[Config] {
	kinds := []process.AddToScheme{
		corev1beta1.AddToScheme, gardencorev1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme,
	}
	return process.Component[Config]{
		Name:  Name,
		Short: "Run the controllers of the garden that need no seed",
		Config: configfile.Kind[Config]{
			AddToScheme: controllermanagerconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateControllerManager,
		},
		Settings: func(c *Config) process.Settings {
			return process.Settings{
				Client: c.GardenClientConnection, LeaderElection: c.LeaderElection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics),
				Debugging: c.Debugging, FeatureGates: c.FeatureGates,
			}
		},
		WithoutEffect: map[featuregate.Feature]bool{"DisableNginxIngressInShoot": false},

		Kinds:    kinds,
		Protobuf: kinds,
		Options: func(c *Config, options *manager.Options) {
			options.Cache.DefaultTransform = Trim
			options.Controller.CacheSyncTimeout = c.Controllers.CacheSyncTimeout.Duration
			options.Controller.ReconciliationTimeout = reconciliationTimeout
		},
		Wire: func(ctx context.Context, p *process.Process, c *Config) error {
			return AddControllers(ctx, p.Manager, &c.Controllers, destination.Public(c.Controllers.Plant.AllowCIDRs...))
		},
	}
}

// Trim removes from cached objects the managed fields and the last applied configuration, which no controller reads, and which can be large
// or contain secrets. Everything else stays, as controllers patch lists as a whole.
var Trim toolscache.TransformFunc = func(in any) (any, error) {
	obj, err := cache.TransformStripManagedFields()(in)
	if err != nil {
		return nil, err
	}
	if accessor, err := meta.Accessor(obj); err == nil {
		delete(accessor.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	return obj, nil
}

// AddControllers adds all controllers to a manager. The configuration has its defaults. What blocked returns, such as destination.Public, is why not to connect
// to a host that a tenant names, or "".
func AddControllers(
	ctx context.Context, mgr manager.Manager, c *controllermanagerconfigv1alpha1.ControllerManagerControllerConfiguration, blocked func(host string) string,
) error {
	if err := references.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	clk := clock.RealClock{}
	// The concurrency of these is not configurable.
	const fixed = controllermanagerconfigv1alpha1.DefaultControllerConcurrentSyncs
	// In the order of the documentation.
	for _, controller := range []struct {
		name string
		add  func() error
	}{
		{"bastion", func() error {
			return bastion.Add(mgr, bastion.Values{
				ConcurrentSyncs: *c.Bastion.ConcurrentSyncs, MaxLifetime: c.Bastion.MaxLifetime.Duration, Clock: clk,
			})
		}},
		{"certificateSigningRequest", func() error {
			return certificatesigningrequest.Add(mgr, certificatesigningrequest.Values{ConcurrentSyncs: *c.CertificateSigningRequest.ConcurrentSyncs, Clock: clk})
		}},
		{"cloudProfile", func() error {
			return cloudprofile.Add(mgr, cloudprofile.Values{ConcurrentSyncs: *c.CloudProfile.ConcurrentSyncs, Clock: clk})
		}},
		{"namespacedCloudProfile", func() error {
			return namespacedcloudprofile.Add(mgr, namespacedcloudprofile.Values{ConcurrentSyncs: *c.NamespacedCloudProfile.ConcurrentSyncs})
		}},
		{"controllerDeployment", func() error {
			return controllerdeployment.Add(mgr, controllerdeployment.Values{ConcurrentSyncs: *c.ControllerDeployment.ConcurrentSyncs})
		}},
		{"controllerRegistration", func() error {
			return installation.Add(mgr, installation.Values{ConcurrentSyncs: *c.ControllerRegistration.ConcurrentSyncs})
		}},
		{"finalizers for controllerInstallations", func() error {
			return registrationfinalizer.Add(mgr, registrationfinalizer.Values{ConcurrentSyncs: fixed})
		}},
		{"extension clusterRoles", func() error {
			return extensionclusterrole.Add(mgr, extensionclusterrole.Values{ConcurrentSyncs: fixed})
		}},
		{"credentialsBinding", func() error {
			return credentialsbinding.Add(mgr, credentialsbinding.Values{ConcurrentSyncs: *c.CredentialsBinding.ConcurrentSyncs})
		}},
		{"secretBinding", func() error {
			return secretbinding.Add(mgr, secretbinding.Values{ConcurrentSyncs: *c.SecretBinding.ConcurrentSyncs})
		}},
		{"references of bindings", func() error { //nolint:contextcheck // event filters have no context, and read from the cache
			// One controller is for both kinds of bindings, each of which has a setting.
			return credentials.Add(mgr, credentials.Values{
				ConcurrentSyncs: max(*c.CredentialsBinding.ConcurrentSyncs, *c.SecretBinding.ConcurrentSyncs),
			})
		}},
		{"event", func() error {
			if c.Event == nil {
				return nil // it is optional
			}
			return event.Add(mgr, event.Values{ConcurrentSyncs: *c.Event.ConcurrentSyncs, TTL: c.Event.TTLNonShootEvents.Duration, Clock: clk})
		}},
		{"exposureClass", func() error {
			return exposureclass.Add(mgr, exposureclass.Values{ConcurrentSyncs: *c.ExposureClass.ConcurrentSyncs})
		}},
		{"quota", func() error { return quota.Add(mgr, quota.Values{ConcurrentSyncs: *c.Quota.ConcurrentSyncs}) }},
		{"plant", func() error {
			return plant.Add(mgr, plant.Values{ConcurrentSyncs: *c.Plant.ConcurrentSyncs, SyncPeriod: c.Plant.SyncPeriod.Duration, Blocked: blocked, Clock: clk})
		}},
		{"project", func() error {
			return project.Add(mgr, project.Values{ConcurrentSyncs: *c.Project.ConcurrentSyncs, Quotas: c.Project.Quotas})
		}},
		{"stale projects", func() error {
			return stale.Add(mgr, stale.Values{
				ConcurrentSyncs: *c.Project.ConcurrentSyncs, SyncPeriod: c.Project.StaleSyncPeriod.Duration,
				MinimumLifetime: stale.Days(*c.Project.MinimumLifetimeDays), GracePeriod: stale.Days(*c.Project.StaleGracePeriodDays),
				Expiration: stale.Days(*c.Project.StaleExpirationTimeDays), Clock: clk,
			})
		}},
		{"activity in projects", func() error {
			return activity.Add(mgr, activity.Values{ConcurrentSyncs: *c.Project.ConcurrentSyncs, Clock: clk})
		}},
		{"resourceQuotas of projects", func() error {
			return resourcequota.Add(mgr, resourcequota.Values{ConcurrentSyncs: *c.Project.ConcurrentSyncs})
		}},
		{"labels of managed seeds", func() error { return managedseed.Add(mgr, managedseed.Values{ConcurrentSyncs: fixed}) }},
		{"managed seeds without Shoot", func() error { return orphan.Add(mgr, orphan.Values{ConcurrentSyncs: fixed}) }},
		{"managedSeedSet", func() error {
			return managedseedset.Add(mgr, managedseedset.Values{
				ConcurrentSyncs: *c.ManagedSeedSet.ConcurrentSyncs, MaxShootRetries: *c.ManagedSeedSet.MaxShootRetries,
				SyncPeriod: c.ManagedSeedSet.SyncPeriod.Duration, Clock: clk,
			})
		}},
		{"shootConditions", func() error {
			return conditions.Add(mgr, conditions.Values{ConcurrentSyncs: *c.ShootConditions.ConcurrentSyncs})
		}},
		{"references", func() error { //nolint:contextcheck // event filters have no context, and read from the cache
			// One controller is for all kinds that refer to others, each of which has a setting.
			return referenceprotection.Add(mgr, referenceprotection.Values{
				ConcurrentSyncs: max(*c.ShootReference.ConcurrentSyncs, *c.SeedReference.ConcurrentSyncs, *c.ControllerDeploymentReference.ConcurrentSyncs),
			})
		}},
		{"seed registration", func() error { return registration.Add(mgr, registration.Values{ConcurrentSyncs: fixed}) }},
		{"seed secrets", func() error { return secrets.Add(mgr, secrets.Values{ConcurrentSyncs: fixed}) }},
		{"seedBackupBucketsCheck and seedExtensionsCheck", func() error {
			buckets, extensions := c.SeedBackupBucketsCheck, c.SeedExtensionsCheck
			return care.Add(mgr, care.Values{
				BackupBuckets: care.Check{
					ConcurrentSyncs: *buckets.ConcurrentSyncs, SyncPeriod: buckets.SyncPeriod.Duration, Thresholds: buckets.ConditionThresholds,
				},
				Extensions: care.Check{
					ConcurrentSyncs: *extensions.ConcurrentSyncs, SyncPeriod: extensions.SyncPeriod.Duration, Thresholds: extensions.ConditionThresholds,
				},
				Clock: clk,
			})
		}},
		{"seed", func() error {
			return lifecycle.Add(mgr, lifecycle.Values{
				ConcurrentSyncs: *c.Seed.ConcurrentSyncs, MonitorPeriod: c.Seed.MonitorPeriod.Duration,
				ShootMonitorPeriod: c.Seed.ShootMonitorPeriod.Duration, SyncPeriod: c.Seed.SyncPeriod.Duration, Clock: clk,
			})
		}},
		{"shootHibernation", func() error {
			return hibernation.Add(mgr, hibernation.Values{
				ConcurrentSyncs: *c.ShootHibernation.ConcurrentSyncs, TriggerDeadline: c.ShootHibernation.TriggerDeadlineDuration.Duration, Clock: clk,
			})
		}},
		{"shootMaintenance", func() error {
			return maintenance.Add(mgr, maintenance.Values{
				ConcurrentSyncs:     *c.ShootMaintenance.ConcurrentSyncs,
				RestartControlPlane: ptr.Deref(c.ShootMaintenance.EnableShootControlPlaneRestarter, false),
				RestartCoreAddons:   ptr.Deref(c.ShootMaintenance.EnableShootCoreAddonRestarter, false),
				Clock:               clk,
			})
		}},
		{"shootMigration", func() error {
			return migration.Add(mgr, migration.Values{ConcurrentSyncs: *c.ShootMigration.ConcurrentSyncs, Clock: clk})
		}},
		{"shootQuota", func() error {
			return shootquota.Add(mgr, shootquota.Values{
				ConcurrentSyncs: *c.ShootQuota.ConcurrentSyncs, SyncPeriod: c.ShootQuota.SyncPeriod.Duration, Clock: clk,
			})
		}},
		{"shootRetry", func() error {
			return retry.Add(mgr, retry.Values{
				ConcurrentSyncs: *c.ShootRetry.ConcurrentSyncs, Period: c.ShootRetry.RetryPeriod.Duration, Jitter: c.ShootRetry.RetryJitterPeriod.Duration,
				Clock: clk,
			})
		}},
		{"shootStatusLabel", func() error {
			return statuslabel.Add(mgr, statuslabel.Values{ConcurrentSyncs: *c.ShootStatusLabel.ConcurrentSyncs})
		}},
		{"shootState", func() error {
			return finalizer.Add(mgr, finalizer.Values{ConcurrentSyncs: *c.ShootState.ConcurrentSyncs})
		}},
	} {
		if err := controller.add(); err != nil {
			return fmt.Errorf("add controller %s: %w", controller.name, err)
		}
	}
	return nil
}
