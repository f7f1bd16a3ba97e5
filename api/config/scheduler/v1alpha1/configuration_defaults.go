package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/config/internal/defaulting"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&SchedulerConfiguration{}, func(obj any) {
		SetDefaults(obj.(*SchedulerConfiguration))
	})
	return nil
}

// SetDefaults sets what the configuration leaves open.
func SetDefaults(config *SchedulerConfiguration) {
	defaulting.ClientConnection(defaulting.Section(&config.ClientConnection), 50, 100)
	defaulting.LeaderElection(defaulting.Section(&config.LeaderElection), SchedulerDefaultLockObjectNamespace, SchedulerDefaultLockObjectName)
	defaulting.Zero(&config.LogLevel, defaulting.LogLevel)
	defaulting.Zero(&config.LogFormat, defaulting.LogFormat)
	defaulting.Zero(&defaulting.Section(&config.Server.HealthProbes).Port, 10251)
	defaulting.Zero(&defaulting.Section(&config.Server.Metrics).Port, 19251)

	defaulting.Zero(&defaulting.Section(&config.Schedulers.BackupBucket).ConcurrentSyncs, 2)
	defaulting.Zero(&defaulting.Section(&config.Schedulers.Shoot).ConcurrentSyncs, 5)
	defaulting.Zero(&config.Schedulers.Shoot.Strategy, DefaultStrategy)
}
