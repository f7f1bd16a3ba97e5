package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/config/internal/defaulting"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&ResourceManagerConfiguration{}, func(obj any) {
		SetDefaults(obj.(*ResourceManagerConfiguration))
	})
	return nil
}

// SetDefaults sets what the configuration leaves open.
func SetDefaults(config *ResourceManagerConfiguration) {
	setClientDefaults(&config.SourceClientConnection)
	if config.TargetClientConnection != nil { // without it, the source is the target
		setClientDefaults(config.TargetClientConnection)
	}
	defaulting.LeaderElection(&config.LeaderElection, "", "gardener-resource-manager")
	defaulting.Zero(&config.LogLevel, defaulting.LogLevel)
	defaulting.Zero(&config.LogFormat, defaulting.LogFormat)
	defaulting.Zero(&config.Server.Webhooks.Port, 9449)
	defaulting.Zero(&defaulting.Section(&config.Server.HealthProbes).Port, 8081)
	defaulting.Zero(&defaulting.Section(&config.Server.Metrics).Port, 8080)
	setControllerDefaults(&config.Controllers)
	setWebhookDefaults(&config.Webhooks)
}

func setClientDefaults(config *ClientConnection) {
	defaulting.ClientConnection(&config.ClientConnectionConfiguration, 100, 130)
	defaulting.Duration(&config.CacheResyncPeriod, 24*time.Hour)
}

func setControllerDefaults(c *ResourceManagerControllerConfiguration) {
	defaulting.Unset(&c.ClusterID, "")
	defaulting.Unset(&c.ResourceClass, resourcesv1alpha1.DefaultResourceClass)
	defaulting.Duration(&c.CacheSyncTimeout, defaulting.CacheSyncTimeout)

	defaulting.Unset(&c.Health.ConcurrentSyncs, 5)
	defaulting.Duration(&c.Health.SyncPeriod, time.Minute)
	defaulting.Unset(&c.ManagedResource.ConcurrentSyncs, 5)
	defaulting.Duration(&c.ManagedResource.SyncPeriod, time.Minute)
	defaulting.Unset(&c.ManagedResource.AlwaysUpdate, false)
	defaulting.Unset(&c.ManagedResource.ManagedByLabelValue, "gardener")

	if c.GarbageCollector.Enabled {
		defaulting.Duration(&c.GarbageCollector.SyncPeriod, time.Hour)
	}
	if c.CSRApprover.Enabled {
		defaulting.Unset(&c.CSRApprover.ConcurrentSyncs, 1)
	}
	if c.IstioClusterConfiguration.Enabled {
		defaulting.Unset(&c.IstioClusterConfiguration.ConcurrentSyncs, 5)
	}
	if c.NetworkPolicy.Enabled {
		defaulting.Unset(&c.NetworkPolicy.ConcurrentSyncs, 5)
	}
	if c.NodeCriticalComponents.Enabled {
		defaulting.Unset(&c.NodeCriticalComponents.ConcurrentSyncs, 5)
		defaulting.Duration(&c.NodeCriticalComponents.Backoff, 10*time.Second)
	}
	if c.NodeAgentReconciliationDelay.Enabled {
		defaulting.Duration(&c.NodeAgentReconciliationDelay.MinDelay, 0)
		defaulting.Duration(&c.NodeAgentReconciliationDelay.MaxDelay, 5*time.Minute)
	}
	if c.TokenInvalidator.Enabled {
		defaulting.Unset(&c.TokenInvalidator.ConcurrentSyncs, 5)
	}
	if c.TokenRequestor.Enabled {
		defaulting.Unset(&c.TokenRequestor.ConcurrentSyncs, 5)
	}
}

func setWebhookDefaults(w *ResourceManagerWebhookConfiguration) {
	if w.PodSchedulerName.Enabled {
		defaulting.Unset(&w.PodSchedulerName.SchedulerName, corev1.DefaultSchedulerName)
	}
	if w.ProjectedTokenMount.Enabled {
		defaulting.Unset(&w.ProjectedTokenMount.ExpirationSeconds, 43200)
	}
}
