package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/config/internal/defaulting"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&ProviderLocalConfiguration{}, func(obj any) {
		SetDefaults(obj.(*ProviderLocalConfiguration))
	})
	return nil
}

// SetDefaults sets what the configuration leaves open.
func SetDefaults(config *ProviderLocalConfiguration) {
	defaulting.ClientConnection(defaulting.Section(&config.ClientConnection), 100, 130)
	defaulting.LeaderElection(defaulting.Section(&config.LeaderElection), config.Namespace, DefaultLockObjectName)
	defaulting.Zero(&config.LogLevel, defaulting.LogLevel)
	defaulting.Zero(&config.LogFormat, defaulting.LogFormat)
	defaulting.Zero(&defaulting.Section(&config.Server.HealthProbes).Port, 8081)
	defaulting.Zero(&defaulting.Section(&config.Server.Metrics).Port, 8080)
	webhooks := defaulting.Section(&config.Server.Webhooks)
	defaulting.Zero(&webhooks.Port, 8443)
	if webhooks.URL == "" {
		defaulting.Zero(&webhooks.Service, "provider-local-webhook")
	}
	if config.ExtensionClasses == nil {
		config.ExtensionClasses = []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot, extensionsv1alpha1.ExtensionClassSeed}
	}
	defaulting.Zero(&config.DNS.Port, 8053)
	defaulting.Zero(&config.Backup.Directory, "/backups")
	defaulting.Zero(&config.Backup.HostPath, DefaultHostPath)
}
