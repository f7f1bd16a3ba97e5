package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	"gardener.cloud/gardener/internal/validation/cidr"
)

// ValidateControllerManager checks the configuration of the gardener-controller-manager.
func ValidateControllerManager(config *controllermanagerconfigv1alpha1.ControllerManagerConfiguration) field.ErrorList {
	errs := client(&config.GardenClientConnection, field.NewPath("gardenClientConnection"))
	errs = append(errs, leaderElection(config.LeaderElection)...)
	errs = append(errs, logging(config.LogLevel, config.LogFormat)...)
	path := field.NewPath("server")
	if server := config.Server.HealthProbes; server != nil {
		errs = append(errs, port(server.Port, path.Child("healthProbes"))...)
	}
	if server := config.Server.Metrics; server != nil {
		errs = append(errs, port(server.Port, path.Child("metrics"))...)
	}
	return append(errs, controllerManagerControllers(&config.Controllers, field.NewPath("controllers"))...)
}

// controllerManagerControllers relies on the defaults: every section but event is set.
func controllerManagerControllers(c *controllermanagerconfigv1alpha1.ControllerManagerControllerConfiguration, path *field.Path) field.ErrorList {
	syncs := func(name string, value *int) namedInt {
		return namedInt{path.Child(name, "concurrentSyncs"), value}
	}
	errs := allNotNegative(
		syncs("bastion", c.Bastion.ConcurrentSyncs),
		syncs("certificateSigningRequest", c.CertificateSigningRequest.ConcurrentSyncs),
		syncs("cloudProfile", c.CloudProfile.ConcurrentSyncs),
		syncs("namespacedCloudProfile", c.NamespacedCloudProfile.ConcurrentSyncs),
		syncs("controllerDeployment", c.ControllerDeployment.ConcurrentSyncs),
		syncs("controllerDeploymentReference", c.ControllerDeploymentReference.ConcurrentSyncs),
		syncs("controllerRegistration", c.ControllerRegistration.ConcurrentSyncs),
		syncs("exposureClass", c.ExposureClass.ConcurrentSyncs),
		syncs("plant", c.Plant.ConcurrentSyncs),
		syncs("project", c.Project.ConcurrentSyncs),
		syncs("quota", c.Quota.ConcurrentSyncs),
		syncs("secretBinding", c.SecretBinding.ConcurrentSyncs),
		syncs("credentialsBinding", c.CredentialsBinding.ConcurrentSyncs),
		syncs("seed", c.Seed.ConcurrentSyncs),
		syncs("seedExtensionsCheck", c.SeedExtensionsCheck.ConcurrentSyncs),
		syncs("seedBackupBucketsCheck", c.SeedBackupBucketsCheck.ConcurrentSyncs),
		syncs("seedReference", c.SeedReference.ConcurrentSyncs),
		syncs("shootMaintenance", c.ShootMaintenance.ConcurrentSyncs),
		syncs("shootQuota", c.ShootQuota.ConcurrentSyncs),
		syncs("shootHibernation", c.ShootHibernation.ConcurrentSyncs),
		syncs("shootReference", c.ShootReference.ConcurrentSyncs),
		syncs("shootRetry", c.ShootRetry.ConcurrentSyncs),
		syncs("shootConditions", c.ShootConditions.ConcurrentSyncs),
		syncs("shootStatusLabel", c.ShootStatusLabel.ConcurrentSyncs),
		syncs("shootMigration", c.ShootMigration.ConcurrentSyncs),
		syncs("managedSeedSet", c.ManagedSeedSet.ConcurrentSyncs),
		syncs("shootState", c.ShootState.ConcurrentSyncs),
		namedInt{path.Child("project", "minimumLifetimeDays"), c.Project.MinimumLifetimeDays},
		namedInt{path.Child("project", "staleGracePeriodDays"), c.Project.StaleGracePeriodDays},
		namedInt{path.Child("project", "staleExpirationTimeDays"), c.Project.StaleExpirationTimeDays},
		namedInt{path.Child("managedSeedSet", "maxShootRetries"), c.ManagedSeedSet.MaxShootRetries},
	)
	errs = append(errs, allPositive(
		namedDuration{path.Child("cacheSyncTimeout"), c.CacheSyncTimeout},
		namedDuration{path.Child("bastion", "maxLifetime"), c.Bastion.MaxLifetime},
		namedDuration{path.Child("plant", "syncPeriod"), c.Plant.SyncPeriod},
		namedDuration{path.Child("project", "staleSyncPeriod"), c.Project.StaleSyncPeriod},
		namedDuration{path.Child("seed", "monitorPeriod"), c.Seed.MonitorPeriod},
		namedDuration{path.Child("seed", "shootMonitorPeriod"), c.Seed.ShootMonitorPeriod},
		namedDuration{path.Child("seed", "syncPeriod"), c.Seed.SyncPeriod},
		namedDuration{path.Child("seedExtensionsCheck", "syncPeriod"), c.SeedExtensionsCheck.SyncPeriod},
		namedDuration{path.Child("seedBackupBucketsCheck", "syncPeriod"), c.SeedBackupBucketsCheck.SyncPeriod},
		namedDuration{path.Child("shootQuota", "syncPeriod"), c.ShootQuota.SyncPeriod},
		namedDuration{path.Child("shootHibernation", "triggerDeadlineDuration"), c.ShootHibernation.TriggerDeadlineDuration},
		namedDuration{path.Child("shootRetry", "retryPeriod"), c.ShootRetry.RetryPeriod},
		namedDuration{path.Child("managedSeedSet", "syncPeriod"), &c.ManagedSeedSet.SyncPeriod},
	)...)
	errs = append(errs, cidr.Validate(cidr.List(path.Child("plant", "allowCIDRs"), c.Plant.AllowCIDRs)...)...)
	if jitter := c.ShootRetry.RetryJitterPeriod; jitter != nil && jitter.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("shootRetry", "retryJitterPeriod"), jitter.Duration.String(), "must not be negative"))
	}
	if c.Event != nil {
		errs = append(errs, notNegative(c.Event.ConcurrentSyncs, path.Child("event", "concurrentSyncs"))...)
		errs = append(errs, positive(c.Event.TTLNonShootEvents, path.Child("event", "ttlNonShootEvents"))...)
	}
	for i, t := range c.SeedExtensionsCheck.ConditionThresholds {
		errs = append(errs, threshold(t.Type, t.Duration, path.Child("seedExtensionsCheck", "conditionThresholds").Index(i))...)
	}
	for i, t := range c.SeedBackupBucketsCheck.ConditionThresholds {
		errs = append(errs, threshold(t.Type, t.Duration, path.Child("seedBackupBucketsCheck", "conditionThresholds").Index(i))...)
	}
	for i, quota := range c.Project.Quotas {
		path := path.Child("project", "quotas").Index(i)
		if len(quota.Config.Spec.Hard) == 0 {
			errs = append(errs, field.Required(path.Child("config", "spec", "hard"), "must have at least one limit"))
		}
		errs = append(errs, selector(quota.ProjectSelector, path.Child("projectSelector"))...)
	}
	return errs
}
