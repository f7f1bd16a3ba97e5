package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/api/config/internal/defaulting"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&OperatorConfiguration{}, func(obj any) {
		SetDefaults(obj.(*OperatorConfiguration))
	})
	return nil
}

// SetDefaults sets what the configuration leaves open.
func SetDefaults(config *OperatorConfiguration) {
	defaulting.ClientConnection(&config.RuntimeClientConnection, 100, 130)
	defaulting.ClientConnection(&config.VirtualClientConnection, 100, 130)
	defaulting.LeaderElection(&config.LeaderElection, DefaultLockObjectNamespace, DefaultLockObjectName)
	defaulting.Zero(&config.LogLevel, defaulting.LogLevel)
	defaulting.Zero(&config.LogFormat, defaulting.LogFormat)
	defaulting.Zero(&config.Server.Webhooks.Port, 2750)
	defaulting.Zero(&defaulting.Section(&config.Server.HealthProbes).Port, 2751)
	defaulting.Zero(&defaulting.Section(&config.Server.Metrics).Port, 2752)

	c := &config.Controllers
	defaulting.Unset(&c.Garden.ConcurrentSyncs, 1)
	defaulting.Duration(&c.Garden.SyncPeriod, time.Hour)
	gardenletconfigv1alpha1.DefaultETCDConfig(defaulting.Section(&c.Garden.ETCDConfig))
	defaulting.Duration(&c.GardenCare.SyncPeriod, time.Minute)
	defaulting.Unset(&c.GardenletDeployer.ConcurrentSyncs, 1)
	defaulting.Unset(&c.Extension.ConcurrentSyncs, 5)
	defaulting.Unset(&c.ExtensionCare.ConcurrentSyncs, 5)
	defaulting.Duration(&c.ExtensionCare.SyncPeriod, time.Minute)
	defaulting.Unset(&c.ExtensionReference.ConcurrentSyncs, 5)
	defaulting.Unset(&c.ExtensionRequiredRuntime.ConcurrentSyncs, 5)
	defaulting.Unset(&c.ExtensionRequiredVirtual.ConcurrentSyncs, 5)
}
