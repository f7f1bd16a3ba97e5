package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
)

// ValidateOperator checks the configuration of the gardener-operator.
func ValidateOperator(config *operatorconfigv1alpha1.OperatorConfiguration) field.ErrorList {
	errs := client(&config.RuntimeClientConnection, field.NewPath("runtimeClientConnection"))
	errs = append(errs, client(&config.VirtualClientConnection, field.NewPath("virtualClientConnection"))...)
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

	c, path := &config.Controllers, field.NewPath("controllers")
	syncs := func(name string, value *int) namedInt {
		return namedInt{path.Child(name, "concurrentSyncs"), value}
	}
	errs = append(errs, allNotNegative(
		syncs("garden", c.Garden.ConcurrentSyncs),
		syncs("gardenletDeployer", c.GardenletDeployer.ConcurrentSyncs),
		syncs("networkPolicy", c.NetworkPolicy.ConcurrentSyncs),
		syncs("vpaEvictionRequirements", c.VPAEvictionRequirements.ConcurrentSyncs),
		syncs("extension", c.Extension.ConcurrentSyncs),
		syncs("extensionCare", c.ExtensionCare.ConcurrentSyncs),
		syncs("extensionReference", c.ExtensionReference.ConcurrentSyncs),
		syncs("extensionRequiredRuntime", c.ExtensionRequiredRuntime.ConcurrentSyncs),
		syncs("extensionRequiredVirtual", c.ExtensionRequiredVirtual.ConcurrentSyncs),
	)...)
	errs = append(errs, allPositive(
		namedDuration{path.Child("garden", "syncPeriod"), c.Garden.SyncPeriod},
		namedDuration{path.Child("gardenCare", "syncPeriod"), c.GardenCare.SyncPeriod},
		namedDuration{path.Child("extensionCare", "syncPeriod"), c.ExtensionCare.SyncPeriod},
	)...)
	for i, t := range c.GardenCare.ConditionThresholds {
		errs = append(errs, threshold(t.Type, t.Duration, path.Child("gardenCare", "conditionThresholds").Index(i))...)
	}
	for i, t := range c.ExtensionCare.ConditionThresholds {
		errs = append(errs, threshold(t.Type, t.Duration, path.Child("extensionCare", "conditionThresholds").Index(i))...)
	}
	for i := range c.NetworkPolicy.AdditionalNamespaceSelectors {
		errs = append(errs, selector(&c.NetworkPolicy.AdditionalNamespaceSelectors[i], path.Child("networkPolicy", "additionalNamespaceSelectors").Index(i))...)
	}
	if tolerations := config.NodeToleration; tolerations != nil {
		path := field.NewPath("nodeToleration")
		errs = append(errs, notNegative(tolerations.DefaultNotReadyTolerationSeconds, path.Child("defaultNotReadyTolerationSeconds"))...)
		errs = append(errs, notNegative(tolerations.DefaultUnreachableTolerationSeconds, path.Child("defaultUnreachableTolerationSeconds"))...)
	}
	return errs
}
