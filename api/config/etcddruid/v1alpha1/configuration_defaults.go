package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/config/internal/defaulting"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&EtcdDruidConfiguration{}, func(obj any) {
		SetDefaults(obj.(*EtcdDruidConfiguration))
	})
	return nil
}

// SetDefaults sets what the configuration leaves open.
func SetDefaults(config *EtcdDruidConfiguration) {
	defaulting.ClientConnection(defaulting.Section(&config.ClientConnection), 50, 100)
	defaulting.LeaderElection(defaulting.Section(&config.LeaderElection), DefaultLockObjectNamespace, DefaultLockObjectName)
	defaulting.Zero(&config.LogLevel, defaulting.LogLevel)
	defaulting.Zero(&config.LogFormat, defaulting.LogFormat)
	defaulting.Zero(&defaulting.Section(&config.Server.HealthProbes).Port, 8081)
	defaulting.Zero(&defaulting.Section(&config.Server.Metrics).Port, 8080)

	etcd := &config.Controllers.Etcd
	defaulting.Zero(&etcd.ConcurrentSyncs, 50)
	defaulting.Zero(&defaulting.Section(&etcd.MemberUnknownAfter).Duration, time.Minute)
	defaulting.Zero(&defaulting.Section(&etcd.MemberNotReadyAfter).Duration, 5*time.Minute)
	defaulting.Zero(&config.Controllers.EtcdCopyBackupsTask.ConcurrentSyncs, 3)
}
