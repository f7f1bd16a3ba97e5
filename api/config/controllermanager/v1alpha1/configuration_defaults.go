package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/config/internal/defaulting"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&ControllerManagerConfiguration{}, func(obj any) {
		SetDefaults(obj.(*ControllerManagerConfiguration))
	})
	return nil
}

// SetDefaults sets what the configuration leaves open.
func SetDefaults(config *ControllerManagerConfiguration) {
	defaulting.ClientConnection(&config.GardenClientConnection, 50, 100)
	defaulting.LeaderElection(defaulting.Section(&config.LeaderElection), ControllerManagerDefaultLockObjectNamespace, ControllerManagerDefaultLockObjectName)
	defaulting.Zero(&config.LogLevel, defaulting.LogLevel)
	defaulting.Zero(&config.LogFormat, defaulting.LogFormat)
	defaulting.Zero(&defaulting.Section(&config.Server.HealthProbes).Port, 2718)
	defaulting.Zero(&defaulting.Section(&config.Server.Metrics).Port, 2719)
	setControllerDefaults(&config.Controllers)
}

func setControllerDefaults(c *ControllerManagerControllerConfiguration) {
	defaulting.Duration(&c.CacheSyncTimeout, defaulting.CacheSyncTimeout)
	for _, concurrentSyncs := range []**int{
		&defaulting.Section(&c.Bastion).ConcurrentSyncs,
		&defaulting.Section(&c.CertificateSigningRequest).ConcurrentSyncs,
		&defaulting.Section(&c.CloudProfile).ConcurrentSyncs,
		&defaulting.Section(&c.NamespacedCloudProfile).ConcurrentSyncs,
		&defaulting.Section(&c.ControllerDeployment).ConcurrentSyncs,
		&defaulting.Section(&c.ControllerDeploymentReference).ConcurrentSyncs,
		&defaulting.Section(&c.ControllerRegistration).ConcurrentSyncs,
		&defaulting.Section(&c.ExposureClass).ConcurrentSyncs,
		&defaulting.Section(&c.Plant).ConcurrentSyncs,
		&defaulting.Section(&c.Project).ConcurrentSyncs,
		&defaulting.Section(&c.Quota).ConcurrentSyncs,
		&defaulting.Section(&c.SecretBinding).ConcurrentSyncs,
		&defaulting.Section(&c.CredentialsBinding).ConcurrentSyncs,
		&defaulting.Section(&c.Seed).ConcurrentSyncs,
		&defaulting.Section(&c.SeedExtensionsCheck).ConcurrentSyncs,
		&defaulting.Section(&c.SeedBackupBucketsCheck).ConcurrentSyncs,
		&defaulting.Section(&c.SeedReference).ConcurrentSyncs,
		&c.ShootMaintenance.ConcurrentSyncs,
		&defaulting.Section(&c.ShootQuota).ConcurrentSyncs,
		&c.ShootHibernation.ConcurrentSyncs,
		&defaulting.Section(&c.ShootReference).ConcurrentSyncs,
		&defaulting.Section(&c.ShootRetry).ConcurrentSyncs,
		&defaulting.Section(&c.ShootConditions).ConcurrentSyncs,
		&defaulting.Section(&c.ShootStatusLabel).ConcurrentSyncs,
		&defaulting.Section(&c.ShootMigration).ConcurrentSyncs,
		&defaulting.Section(&c.ManagedSeedSet).ConcurrentSyncs,
		&defaulting.Section(&c.ShootState).ConcurrentSyncs,
	} {
		defaulting.Unset(concurrentSyncs, DefaultControllerConcurrentSyncs)
	}

	if c.Event != nil { // without it there is no controller
		defaulting.Unset(&c.Event.ConcurrentSyncs, DefaultControllerConcurrentSyncs)
		defaulting.Duration(&c.Event.TTLNonShootEvents, time.Hour)
	}

	defaulting.Duration(&c.Bastion.MaxLifetime, 24*time.Hour)

	defaulting.Duration(&c.Plant.SyncPeriod, 30*time.Second)

	defaulting.Unset(&c.Project.MinimumLifetimeDays, 30)
	defaulting.Unset(&c.Project.StaleGracePeriodDays, 14)
	defaulting.Unset(&c.Project.StaleExpirationTimeDays, 90)
	defaulting.Duration(&c.Project.StaleSyncPeriod, 12*time.Hour)

	defaulting.Duration(&c.Seed.MonitorPeriod, 40*time.Second)
	defaulting.Duration(&c.Seed.ShootMonitorPeriod, 5*c.Seed.MonitorPeriod.Duration)
	defaulting.Duration(&c.Seed.SyncPeriod, 10*time.Second)
	defaulting.Duration(&c.SeedExtensionsCheck.SyncPeriod, 30*time.Second)
	defaulting.Duration(&c.SeedBackupBucketsCheck.SyncPeriod, 30*time.Second)

	defaulting.Unset(&c.ShootMaintenance.EnableShootControlPlaneRestarter, true)
	defaulting.Duration(&c.ShootQuota.SyncPeriod, time.Hour)
	defaulting.Duration(&c.ShootHibernation.TriggerDeadlineDuration, 2*time.Hour)
	defaulting.Duration(&c.ShootRetry.RetryPeriod, 10*time.Minute)
	defaulting.Duration(&c.ShootRetry.RetryJitterPeriod, 5*time.Minute)

	defaulting.Unset(&c.ManagedSeedSet.MaxShootRetries, 3)
	if c.ManagedSeedSet.SyncPeriod.Duration == 0 {
		c.ManagedSeedSet.SyncPeriod.Duration = 30 * time.Minute
	}
}
