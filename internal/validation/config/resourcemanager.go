package config

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
)

const (
	// minResyncPeriod keeps caches from enqueuing every object too often.
	minResyncPeriod = 10 * time.Second
	// minSyncPeriod keeps periodic controllers from doing nothing else.
	minSyncPeriod = 15 * time.Second
	// minTokenExpiration is the shortest validity that Kubernetes gives a token.
	minTokenExpiration = 10 * time.Minute
)

// ValidateResourceManager checks the configuration of the gardener-resource-manager.
func ValidateResourceManager(config *resourcemanagerconfigv1alpha1.ResourceManagerConfiguration) field.ErrorList {
	errs := resourceManagerClient(&config.SourceClientConnection, field.NewPath("sourceClientConnection"))
	if config.TargetClientConnection != nil {
		errs = append(errs, resourceManagerClient(config.TargetClientConnection, field.NewPath("targetClientConnection"))...)
	}
	errs = append(errs, leaderElection(&config.LeaderElection)...)
	errs = append(errs, logging(config.LogLevel, config.LogFormat)...)
	path := field.NewPath("server")
	errs = append(errs, port(config.Server.Webhooks.Port, path.Child("webhooks"))...)
	if server := config.Server.HealthProbes; server != nil {
		errs = append(errs, port(server.Port, path.Child("healthProbes"))...)
	}
	if server := config.Server.Metrics; server != nil {
		errs = append(errs, port(server.Port, path.Child("metrics"))...)
	}
	errs = append(errs, resourceManagerControllers(&config.Controllers, field.NewPath("controllers"))...)
	return append(errs, resourceManagerWebhooks(&config.Webhooks, field.NewPath("webhooks"))...)
}

func resourceManagerClient(config *resourcemanagerconfigv1alpha1.ClientConnection, path *field.Path) field.ErrorList {
	errs := client(&config.ClientConnectionConfiguration, path)
	return append(errs, atLeast(config.CacheResyncPeriod, minResyncPeriod, path.Child("cacheResyncPeriod"))...)
}

func resourceManagerControllers(c *resourcemanagerconfigv1alpha1.ResourceManagerControllerConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.ResourceClass != nil {
		errs = append(errs, required(*c.ResourceClass, path.Child("resourceClass"))...)
	}
	errs = append(errs, positive(c.CacheSyncTimeout, path.Child("cacheSyncTimeout"))...)
	if c.GarbageCollector.Enabled {
		errs = append(errs, atLeast(c.GarbageCollector.SyncPeriod, minSyncPeriod, path.Child("garbageCollector", "syncPeriod"))...)
	}
	errs = append(errs, atLeast(c.Health.SyncPeriod, minSyncPeriod, path.Child("health", "syncPeriod"))...)
	errs = append(errs, atLeast(c.ManagedResource.SyncPeriod, minSyncPeriod, path.Child("managedResource", "syncPeriod"))...)
	if c.ManagedResource.ManagedByLabelValue != nil {
		errs = append(errs, required(*c.ManagedResource.ManagedByLabelValue, path.Child("managedResource", "managedByLabelValue"))...)
	}
	errs = append(errs, allNotNegative(
		namedInt{path.Child("health", "concurrentSyncs"), c.Health.ConcurrentSyncs},
		namedInt{path.Child("csrApprover", "concurrentSyncs"), c.CSRApprover.ConcurrentSyncs},
		namedInt{path.Child("managedResource", "concurrentSyncs"), c.ManagedResource.ConcurrentSyncs},
		namedInt{path.Child("istioClusterConfiguration", "concurrentSyncs"), c.IstioClusterConfiguration.ConcurrentSyncs},
		namedInt{path.Child("networkPolicy", "concurrentSyncs"), c.NetworkPolicy.ConcurrentSyncs},
		namedInt{path.Child("nodeCriticalComponents", "concurrentSyncs"), c.NodeCriticalComponents.ConcurrentSyncs},
		namedInt{path.Child("tokenInvalidator", "concurrentSyncs"), c.TokenInvalidator.ConcurrentSyncs},
		namedInt{path.Child("tokenRequestor", "concurrentSyncs"), c.TokenRequestor.ConcurrentSyncs},
	)...)
	if c.NetworkPolicy.Enabled {
		path := path.Child("networkPolicy")
		for i := range c.NetworkPolicy.NamespaceSelectors {
			errs = append(errs, selector(&c.NetworkPolicy.NamespaceSelectors[i], path.Child("namespaceSelectors").Index(i))...)
		}
		if ingress := c.NetworkPolicy.IngressControllerSelector; ingress != nil {
			path := path.Child("ingressControllerSelector")
			errs = append(errs, required(ingress.Namespace, path.Child("namespace"))...)
			errs = append(errs, selector(&ingress.PodSelector, path.Child("podSelector"))...)
		}
	}
	errs = append(errs, positive(c.NodeCriticalComponents.Backoff, path.Child("nodeCriticalComponents", "backoff"))...)
	if delay := c.NodeAgentReconciliationDelay; delay.Enabled && delay.MinDelay != nil && delay.MaxDelay != nil {
		path := path.Child("nodeAgentReconciliationDelay")
		if delay.MinDelay.Duration < 0 {
			errs = append(errs, field.Invalid(path.Child("minDelay"), delay.MinDelay.Duration.String(), "must not be negative"))
		}
		if delay.MinDelay.Duration > delay.MaxDelay.Duration {
			errs = append(errs, field.Invalid(path.Child("minDelay"), delay.MinDelay.Duration.String(), "must not be longer than maxDelay"))
		}
	}
	return errs
}

func resourceManagerWebhooks(w *resourcemanagerconfigv1alpha1.ResourceManagerWebhookConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if w.HighAvailabilityConfig.Enabled {
		path := path.Child("highAvailabilityConfig")
		errs = append(errs, notNegative(w.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds, path.Child("defaultNotReadyTolerationSeconds"))...)
		errs = append(errs, notNegative(w.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds, path.Child("defaultUnreachableTolerationSeconds"))...)
	}
	if w.KubernetesServiceHost.Enabled {
		errs = append(errs, required(w.KubernetesServiceHost.Host, path.Child("kubernetesServiceHost", "host"))...)
	}
	if w.PodSchedulerName.Enabled && w.PodSchedulerName.SchedulerName != nil {
		errs = append(errs, required(*w.PodSchedulerName.SchedulerName, path.Child("podSchedulerName", "schedulerName"))...)
	}
	if w.ProjectedTokenMount.Enabled && w.ProjectedTokenMount.ExpirationSeconds != nil {
		if seconds := *w.ProjectedTokenMount.ExpirationSeconds; seconds < int64(minTokenExpiration/time.Second) {
			errs = append(errs, field.Invalid(path.Child("projectedTokenMount", "expirationSeconds"), seconds, "must be at least 600"))
		}
	}
	return errs
}
